/**
 * The drawing on a canvas, for more items than SVG can move: the same View. Only what is in sight is drawn, and text
 * only where it can be read; below that, boxes, and from afar a rectangle each.
 */
import { curvePath, tipPath } from "./curves.js";
import { h } from "../panels/dom.js";
import { rampOf } from "./heatcolour.js";
import { lookOf, nodesOf, progressOf, spokenNode } from "./looks.js";
import { paintBlockBox, paintMoment, paintNodeBox, ringAround } from "./paint.js";
import { PALETTE } from "./palette.js";
import { focusOf } from "./overlay.js";
import { neighbour, wayOf } from "./roving.js";
import { localText } from "./scene.js";
import { coloursAt } from "./style.js";
import { unlike } from "./svg.js";
import { viewport } from "./viewport.js";

/** @typedef {import("../types.js").Graph} Graph */
/** @typedef {import("../types.js").Playback} Playback */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./viewport.js").Rect} Rect */

const BOXES = 0.16; // from this scale on, cards and curves
const TEXT = 0.42; // from this scale on, text
/** How a wire is drawn. */
const [IDLE, FUTURE, DONE, NO_FLOW] = [0, 1, 2, 3];

/**
 * @param {HTMLElement} host
 * @param {Graph} graph
 * @param {Playback} playback
 * @param {Scene} scene
 * @param {import("./svg.js").Listeners} [listeners]
 * @returns {import("./svg.js").View}
 */
export function canvasView(host, graph, playback, scene, listeners = {}) {
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { tabindex: 0, role: "application" }));
  canvas.setAttribute("aria-label", `${graph.sentence} Arrow keys follow the edges. The table lists all nodes.`);
  const said = h("span", { class: "mg-said", "aria-live": "polite" });
  const now = newState(graph, playback, scene);
  let asked = 0;
  const ask = () => (asked ||= requestAnimationFrame(draw));
  const port = viewport(host, () => ask());
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  function draw() {
    asked = 0;
    sizeCanvas(canvas, port.view, port.stage);
    paintScene(context, graph, now, port.shown(), port.scale());
  }
  const setScene = (/** @type {Scene} */ next, /** @type {Playback} */ played = now.playback) => {
    Object.assign(now, newState(graph, played, next), { selected: now.selected });
    port.resize(next.width, next.height, true);
    restart(graph, now, port.view);
    ask();
  };
  const focusItem = (/** @type {string} */ id) => {
    const at = now.places.get(id);
    if (at === undefined) return;
    now.focus = id;
    canvas.focus({ preventScroll: true });
    said.textContent = nameOf(graph, now, at);
    port.reveal(now.scene.items[at]);
    ask();
  };
  port.stage.append(canvas, said);
  listenOn(canvas, port, now, listeners, focusItem, ask);
  setScene(scene);
  const active = playback.moment().node;
  if (active >= 0) port.reveal(scene.items[scene.itemOf(active)]);
  const stop = () => cancelAnimationFrame(asked);
  return viewOf(graph, now, port, { setScene, focusItem, ask, stop });
}

/**
 * The View, as others see it.
 * @param {Graph} graph
 * @param {State} now
 * @param {import("./viewport.js").Viewport} port
 * @param {{setScene: (next: Scene) => void, focusItem: (id: string) => void, ask: () => void, stop: () => void}} does
 * @returns {import("./svg.js").View}
 */
function viewOf(graph, now, port, { setScene, focusItem, ask, stop }) {
  return {
    element: port.view,
    update(changed) {
      if (changed === null) restart(graph, now, port.view);
      else apply(graph, now, changed);
      const rect = changed && focusOf(now.scene, graph, now.playback.moment(), port.shown());
      if (rect) port.reveal(rect);
      ask();
    },
    renumber() {
      if (unlike(now)) restart(graph, now, port.view);
      ask();
    },
    setScene,
    select(id) {
      now.selected = id;
      ask();
    },
    mark(nodes) {
      now.marks = [...new Set(nodes.map(now.scene.itemOf))];
      ask();
    },
    reveal(id) {
      const at = now.places.get(id);
      if (at !== undefined) port.reveal(now.scene.items[at]);
    },
    focusItem,
    zoom: port.zoom,
    fit: port.fit,
    shown: port.shown,
    look: port.look,
    destroy() {
      stop();
      port.destroy();
    },
  };
}

/**
 * Everything anew: other numbers, another scene, or another theme.
 * @param {Graph} graph @param {State} now @param {Element} view
 */
function restart(graph, now, view) {
  now.colours = coloursAt(view);
  now.ramp = rampOf(now.colours);
  now.font = getComputedStyle(view).fontFamily;
  now.pictures = new WeakMap();
  unlike(now);
  now.progress.count(nodesOf(graph));
  now.scene.items.forEach((_, at) => note(graph, now, at));
  now.scene.wires.forEach((_, at) => noteWire(graph, now, at));
}

/** @param {Graph} graph @param {Playback} playback @param {Scene} scene */
function newState(graph, playback, scene) {
  return {
    scene,
    playback,
    places: new Map(scene.items.map((item, at) => [item.id, at])),
    progress: progressOf(graph, playback),
    values: playback.numbers.value,
    pale: new Uint8Array(scene.items.length),
    wireState: new Uint8Array(scene.wires.length),
    bounds: boundsOf(scene),
    /** @type {(Path2D | undefined)[]} */ curves: [],
    /** @type {string | null} */ selected: null,
    focus: "",
    hover: "",
    /** @type {number[]} */ marks: [],
    /** @type {Record<string, string>} */ colours: {},
    ramp: rampOf(PALETTE.light),
    font: "sans-serif",
    /** @type {import("./paint.js").Brush["pictures"]} */ pictures: new WeakMap(),
  };
}

/** @typedef {ReturnType<typeof newState>} State */

/** Of each wire the box around it: left, top, right, bottom. @param {Scene} scene */
function boundsOf({ wires }) {
  const bounds = new Float64Array(4 * wires.length);
  wires.forEach(({ points }, at) => {
    let [top, bottom] = [Infinity, -Infinity];
    for (const [, y] of points) [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    bounds.set([points[0][0], top - 5, points[points.length - 1][0], bottom + 5], 4 * at);
  });
  return bounds;
}

/**
 * As large as what is seen, in the pixels of the screen.
 * @param {HTMLCanvasElement} canvas @param {HTMLElement} view @param {HTMLElement} stage
 */
function sizeCanvas(canvas, view, stage) {
  const ratio = canvas.ownerDocument.defaultView?.devicePixelRatio ?? 1;
  const wide = Math.min(view.clientWidth, stage.clientWidth);
  const high = Math.min(view.clientHeight, stage.clientHeight) || Math.min(stage.clientHeight, 600);
  const [w, hgt] = [Math.round(wide * ratio), Math.round(high * ratio)];
  if (canvas.width === w && canvas.height === hgt) return;
  [canvas.width, canvas.height] = [w, hgt];
  Object.assign(canvas.style, { width: `${wide}px`, height: `${high}px` });
}

/** @param {Graph} graph @param {State} now @param {number} at */
function note(graph, now, at) {
  const { node, block } = now.scene.items[at];
  const done = node < 0 ? now.progress.done[block] : null;
  now.pale[at] = Number(done ? done.of > 0 && !done.forward : lookOf(graph, now.playback, node).pale);
}

/** @param {Graph} graph @param {State} now @param {number} at */
function noteWire(graph, now, at) {
  const { edges, flows } = now.scene.wires[at];
  const known = edges.some((edge) => now.playback.known(graph.result[edge]));
  if (edges.some((edge) => now.playback.edgeState(edge) === "done")) now.wireState[at] = DONE;
  else now.wireState[at] = !known ? FUTURE : flows ? IDLE : NO_FLOW;
}

/** @param {Graph} graph @param {State} now @param {import("../types.js").Changed} changed */
function apply(graph, now, changed) {
  for (const block of now.progress.count(changed.nodes)) {
    const at = now.places.get(`b${block}`);
    if (at !== undefined) note(graph, now, at);
  }
  for (const node of changed.nodes) {
    const at = now.scene.itemOf(node);
    if (now.scene.items[at].node === node) note(graph, now, at);
  }
  for (const edge of changed.edges) if (now.scene.wireOf[edge] >= 0) noteWire(graph, now, now.scene.wireOf[edge]);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Graph} graph @param {State} now @param {Rect} seen
 * @param {number} scale
 */
function paintScene(context, graph, now, seen, scale) {
  const ratio = (context.canvas.width / Math.max(parseFloat(context.canvas.style.width), 1)) * scale;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = now.colours.page;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  context.setTransform(ratio, 0, 0, ratio, -Math.max(seen.x, 0) * ratio, -seen.y * ratio);
  paintFrames(context, now, scale);
  paintWires(context, now, seen, scale);
  if (scale < BOXES) paintFar(context, now, seen);
  else paintItems(context, graph, now, seen, scale);
  if (scale >= TEXT) paintLabels(context, graph, now, seen);
  for (const at of now.marks)
    ringAround(context, now.scene.items[at], 4, now.colours.ink, 2 / Math.min(scale, 1), [5, 3]);
  paintMoment(context, graph, now, scale);
  ring(context, now, now.hover, 3, "muted", scale);
  ring(context, now, now.selected ?? "", 6, "ink", scale, [5, 3]);
  ring(context, now, now.focus, 9, "forward", scale);
}

/**
 * @param {CanvasRenderingContext2D} context @param {State} now @param {string} id
 * @param {number} out @param {string} colour @param {number} scale @param {number[]} [dash]
 */
function ring(context, now, id, out, colour, scale, dash = []) {
  const at = now.places.get(id);
  if (at === undefined) return;
  ringAround(context, now.scene.items[at], out, now.colours[colour], 2 / Math.min(scale, 1), dash);
}

/** Whether a box is in sight. @param {Rect} box @param {Rect} seen */
function sighted({ x, y, w, h: high }, seen) {
  return x <= seen.x + seen.w && x + w >= seen.x && y <= seen.y + seen.h && y + high >= seen.y;
}

/** @param {CanvasRenderingContext2D} context @param {State} now @param {number} scale */
function paintFrames(context, now, scale) {
  for (const { x, y, w, h: high, name } of now.scene.hulls) {
    context.globalAlpha = 0.025;
    context.fillStyle = now.colours.ink;
    context.fillRect(x, y, w, high);
    context.globalAlpha = 0.55;
    context.fillStyle = now.colours.rim;
    context.fillRect(x, y, w, 22);
    context.globalAlpha = 1;
    context.strokeStyle = now.colours.line;
    context.lineWidth = Math.min(1 / scale, 6);
    context.strokeRect(x, y, w, high);
    if (scale < TEXT) continue;
    context.fillStyle = now.colours.ink;
    context.textAlign = "left";
    context.font = `600 11.5px ${now.font}`;
    context.fillText(`−  ${name}`, x + 9, y + 15);
  }
}

/** @param {CanvasRenderingContext2D} context @param {State} now @param {Rect} seen @param {number} scale */
function paintWires(context, now, seen, scale) {
  const { bounds, scene, wireState } = now;
  const [right, bottom] = [seen.x + seen.w, seen.y + seen.h];
  const far = scale < TEXT;
  const batches = [0, 1, 2, 3].map(() => new Path2D());
  const tips = [0, 1, 2, 3].map(() => new Path2D());
  for (let at = 0; at < scene.wires.length; at += 1) {
    const b = 4 * at;
    if (bounds[b] > right || bounds[b + 2] < seen.x || bounds[b + 1] > bottom || bounds[b + 3] < seen.y) continue;
    const { points } = scene.wires[at];
    const path = batches[wireState[at]];
    if (!far) {
      path.addPath((now.curves[at] ??= new Path2D(curvePath(points))));
      tips[wireState[at]].addPath(new Path2D(tipPath(points[points.length - 1])));
      continue;
    }
    path.moveTo(...points[0]);
    for (let k = 1; k < points.length; k += 1) path.lineTo(...points[k]);
  }
  const colours = [now.colours.line, now.colours.rim, now.colours.heat, now.colours.line];
  for (const state of [FUTURE, NO_FLOW, IDLE, DONE]) {
    context.setLineDash(state === NO_FLOW && !far ? [2, 4] : []);
    context.strokeStyle = context.fillStyle = colours[state];
    context.lineWidth = far ? (state === DONE ? 1.2 : 0.6) / scale : state === DONE ? 2.5 : 1.5;
    context.stroke(batches[state]);
    if (!far) context.fill(tips[state]);
  }
  context.setLineDash([]);
}

/** @param {CanvasRenderingContext2D} context @param {Graph} graph @param {State} now @param {Rect} seen */
function paintLabels(context, graph, now, seen) {
  context.font = `11px ${now.font}`;
  context.textAlign = "right";
  context.lineWidth = 5;
  context.lineJoin = "round";
  context.strokeStyle = now.colours.page;
  context.fillStyle = now.colours.backward;
  const told = now.playback.moment().edge;
  now.scene.wires.forEach((wire, at) => {
    const [x, y] = wire.labelAt;
    if (!wire.label || wire.edges[0] === told || now.wireState[at] === FUTURE) return;
    if (!sighted({ x: x - 100, y: y - 10, w: 100, h: 20 }, seen)) return;
    const words = localText(graph, now.playback.numbers, wire.edges[0], now.scene.wordy);
    context.strokeText(words, x, y + 3.9);
    context.fillText(words, x, y + 3.9);
  });
}

/**
 * A rectangle an item, those of one colour together.
 * @param {CanvasRenderingContext2D} context @param {State} now @param {Rect} seen
 */
function paintFar(context, now, seen) {
  const { colours } = now;
  const fills = {
    leaf: colours.leaf,
    op: colours.muted,
    constant: colours.line,
    broken: colours.alarm,
    block: colours.line,
    pale: colours.rim,
    bad: colours.alarm,
    output: colours.output,
  };
  /** @type {Map<string, Path2D>} */
  const paths = new Map();
  now.scene.items.forEach((item, at) => {
    if (!sighted(item, seen)) return;
    const { kind, alarm, output } = item.card;
    const colour = fills[alarm ? "bad" : now.pale[at] ? "pale" : output ? "output" : kind];
    const path = paths.get(colour) ?? new Path2D();
    path.rect(item.x, item.y, item.w, item.h);
    paths.set(colour, path);
  });
  for (const [colour, path] of paths) {
    context.fillStyle = colour;
    context.fill(path);
  }
}

/**
 * @param {CanvasRenderingContext2D} context @param {Graph} graph @param {State} now @param {Rect} seen
 * @param {number} scale
 */
function paintItems(context, graph, now, seen, scale) {
  now.scene.items.forEach((item, at) => {
    if (!sighted(item, seen)) return;
    context.globalAlpha = item.node >= 0 && now.playback.unable(item.node) ? 0.35 : 1;
    if (item.node < 0)
      paintBlockBox(context, item, now, now.progress.done[item.block], scale >= TEXT, now.pale[at] > 0);
    else
      paintNodeBox(context, item, now, scale >= TEXT ? lookOf(graph, now.playback, item.node) : null, now.pale[at] > 0);
  });
  context.globalAlpha = 1;
}

/** @param {Graph} graph @param {State} now @param {number} at */
function nameOf(graph, now, at) {
  const { node, block, card } = now.scene.items[at];
  if (node < 0) return `${graph.blocks[block].name}, closed block of ${card.note}`;
  return spokenNode(graph, lookOf(graph, now.playback, node), node, card.rule);
}

/**
 * @param {HTMLCanvasElement} canvas @param {import("./viewport.js").Viewport} port @param {State} now
 * @param {import("./svg.js").Listeners} listeners @param {(id: string) => void} focusItem @param {() => void} ask
 */
function listenOn(canvas, port, now, listeners, focusItem, ask) {
  const choose = (/** @type {import("./scene.js").SceneItem | undefined} */ item) => {
    listeners.select?.(item?.id ?? null);
    if (item && item.block >= 0) listeners.toggle?.(item.block);
  };
  const point = (/** @type {string} */ id) => {
    if (id === now.hover) return;
    now.hover = id;
    canvas.style.cursor = id ? "pointer" : "";
    listeners.hover?.(id || null);
    ask();
  };
  canvas.addEventListener("click", (event) => {
    const place = placeIn(canvas, port, event);
    const item = itemAt(now.scene, place);
    const bars = now.scene.hulls.filter((hull) => sighted({ ...hull, h: 22 }, { ...place, w: 0, h: 0 }));
    const bar = bars[bars.length - 1]; // the innermost
    if (bar && !item) listeners.toggle?.(bar.block);
    else choose(item);
  });
  canvas.addEventListener("pointermove", (event) => point(itemAt(now.scene, placeIn(canvas, port, event))?.id ?? ""));
  canvas.addEventListener("pointerleave", () => point(""));
  canvas.addEventListener("blur", () => {
    now.focus = "";
    ask();
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = wayOf(event.key);
    const at = now.places.get(now.focus) ?? now.places.get(now.selected ?? "") ?? -1;
    if (!way && event.key !== "Enter") return;
    event.preventDefault();
    if (!way) return choose(now.scene.items[at]);
    const to = at < 0 ? 0 : neighbour(now.scene, at, way);
    if (to >= 0) focusItem(now.scene.items[to].id);
  });
}

/**
 * The place in the scene that the mouse is at.
 * @param {HTMLCanvasElement} canvas @param {import("./viewport.js").Viewport} port @param {MouseEvent} event
 */
function placeIn(canvas, port, event) {
  const box = canvas.getBoundingClientRect();
  const seen = port.shown();
  const x = Math.max(seen.x, 0) + (event.clientX - box.left) / port.scale();
  return { x, y: seen.y + (event.clientY - box.top) / port.scale() };
}

/** @param {Scene} scene @param {{x: number, y: number}} place */
function itemAt({ items }, place) {
  return items.find((item) => sighted(item, { ...place, w: 0, h: 0 }));
}
