/**
 * A small map of a large graph: every node is a point, x by its depth, y by its place among those of the same depth.
 * Its pixels are written one by one, so 100,000 nodes take a few milliseconds. A frame shows where the reader is.
 */
import { floor, max, min, round, sqrt } from "../math.js";
import { alarmsOf } from "./cards.js";
import { h } from "../panels/dom.js";
import { rgbOf } from "./heatcolour.js";
import { coloursAt } from "./style.js";
import { BROKEN, CONSTANT, LEAF } from "../model/trace.js";

/** @typedef {import("../types.js").Graph} Graph */
/** @typedef {import("../types.js").Playback} Playback */

/**
 * Where each node lies: its depth, its place within the depth, and how many there are of each depth. A leaf lies just
 * before its first use, not far away in the first column.
 * @param {Graph} graph
 */
export function depthsOf(graph) {
  const { count, start, operand } = graph;
  const depth = new Int32Array(count);
  const first = new Int32Array(count).fill(-1);
  for (let node = 0; node < count; node += 1) {
    for (let edge = start[node]; edge < start[node + 1]; edge += 1)
      depth[node] = max(depth[node], depth[operand[edge]] + 1);
  }
  for (let edge = 0; edge < graph.edgeCount; edge += 1) {
    const from = operand[edge];
    const to = depth[graph.result[edge]];
    if (start[from] === start[from + 1] && (first[from] < 0 || to < first[from])) first[from] = to;
  }
  let columns = 0;
  for (let node = 0; node < count; node += 1) {
    if (first[node] > 0) depth[node] = first[node] - 1;
    columns = max(columns, depth[node] + 1);
  }
  const sizes = new Int32Array(columns);
  const place = new Int32Array(count);
  for (let node = 0; node < count; node += 1) place[node] = sizes[depth[node]]++;
  return { depth, place, sizes };
}

/**
 * Points in a picture of w × h pixels: the left and top pixel of each node, how wide all points are, and how high those
 * of each depth. A depth with four times as many nodes is twice as tall.
 * @param {ReturnType<typeof depthsOf>} where @param {number} w @param {number} hgt
 */
export function pointsIn({ depth, place, sizes }, w, hgt) {
  const most = sizes.reduce((a, b) => max(a, b), 1);
  const wide = max(1, min(14, floor((0.8 * w) / max(sizes.length, 1))));
  const tall = Float64Array.from(sizes, (many) => hgt * sqrt(many / most));
  const high = Int16Array.from(sizes, (many, k) => max(1, min(14, floor((0.8 * tall[k]) / many))));
  const x = new Int16Array(depth.length);
  const y = new Int16Array(depth.length);
  for (let node = 0; node < depth.length; node += 1) {
    const k = depth[node];
    const middle = (hgt - tall[k]) / 2 + ((place[node] + 0.5) / sizes[k]) * tall[k];
    x[node] = round(((k + 0.5) / sizes.length) * w - wide / 2);
    y[node] = max(0, min(hgt - high[k], round(middle - high[k] / 2)));
    if (x[node] < 0 || x[node] > w - wide) x[node] = max(0, w - wide);
  }
  return { x, y, wide, highAt: (/** @type {number} */ node) => high[depth[node]] };
}

/**
 * The map, in `host`, as wide as that.
 * @param {HTMLElement} host
 * @param {Graph} graph
 * @param {Playback} playback
 * @param {{reveal?: (node: number) => void, height?: number}} [options] `reveal` hears of the node that was clicked
 */
export function overview(host, graph, playback, { reveal = () => {}, height = 90 } = {}) {
  const canvas = /** @type {HTMLCanvasElement} */ (
    h("canvas", {
      role: "img",
      "aria-label": `Map of all ${graph.count.toLocaleString("en")} nodes, leaves to the left`,
      onclick(/** @type {MouseEvent} */ event) {
        const node = nearest(now.points, canvas, event);
        if (node >= 0) reveal(node);
      },
    })
  );
  const box = h("div", { class: "mg-overview" }, canvas);
  host.append(box);
  const where = depthsOf(graph);
  const now = newMap(graph, playback, where);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const show = () => {
    now.asked = 0;
    context.putImageData(now.image, 0, 0);
    paintFrame(context, now, coloursAt(canvas));
  };
  const ask = () => (now.asked ||= requestAnimationFrame(show));
  const restart = () => {
    const ratio = devicePixelRatio;
    const [w, hgt] = [max(1, round(box.clientWidth * ratio)), round(height * ratio)];
    [canvas.width, canvas.height] = [w, hgt];
    Object.assign(canvas.style, { width: `${w / ratio}px`, height: `${height}px` });
    now.points = pointsIn(where, w, hgt);
    now.image = new ImageData(w, hgt);
    for (const [name, colour] of Object.entries(coloursAt(canvas))) now.pixels[name] = pixelOf(colour);
    paintDots(graph, now, graph.kind.keys());
    show();
  };
  const observer = new ResizeObserver(restart);
  observer.observe(box);
  return {
    element: box,
    /** What a step changed; null is everything. @param {import("../types.js").Changed | null} changed */
    update(changed) {
      if (changed === null) return restart();
      paintDots(graph, now, changed.nodes);
      ask();
    },
    /** Puts a frame around these nodes: those that are seen, say. @param {ArrayLike<number>} nodes */
    frame(nodes) {
      now.framed = nodes;
      ask();
    },
    /** @param {Playback} next */
    setPlayback(next) {
      now.playback = next;
      restart();
    },
    destroy() {
      observer.disconnect();
      cancelAnimationFrame(now.asked);
      box.remove();
    },
  };
}

/** @param {Graph} graph @param {Playback} playback @param {ReturnType<typeof depthsOf>} where */
function newMap(graph, playback, where) {
  return {
    playback,
    alarms: alarmsOf(graph),
    framed: /** @type {ArrayLike<number>} */ ([]),
    points: pointsIn(where, 1, 1),
    image: new ImageData(1, 1),
    /** @type {Record<string, number>} */ pixels: {},
    asked: 0,
  };
}

/** The colour of a node now. @param {Graph} graph @param {ReturnType<typeof newMap>} now @param {number} node */
function colourOf(graph, { alarms, playback }, node) {
  const { timeline, position } = playback;
  const kind = graph.kind[node];
  if (alarms[node] || kind === BROKEN) return "alarm";
  const final = timeline.finalAt(node);
  if (final >= 0 && final <= position) return "hot";
  if (kind === LEAF) return "forward";
  return kind === CONSTANT ? "line" : timeline.computedAt(node) <= position ? "muted" : "rim";
}

/**
 * Writes the pixels of nodes.
 * @param {Graph} graph @param {ReturnType<typeof newMap>} now @param {Iterable<number>} nodes
 */
function paintDots(graph, now, nodes) {
  const pixels = new Uint32Array(now.image.data.buffer);
  const { x, y, wide, highAt } = now.points;
  const { width } = now.image;
  for (const node of nodes) {
    const colour = now.pixels[colourOf(graph, now, node)];
    const end = (y[node] + highAt(node)) * width + x[node];
    for (let at = y[node] * width + x[node]; at < end; at += width) {
      for (let k = 0; k < wide; k += 1) pixels[at + k] = colour;
    }
  }
}

/** A colour as a pixel. @param {string} colour */
function pixelOf(colour) {
  const [r, g, b] = rgbOf(colour);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/**
 * The frame of what is seen, and the place of the present moment.
 * @param {CanvasRenderingContext2D} context
 * @param {{framed: ArrayLike<number>, points: ReturnType<typeof pointsIn>, playback: Playback}} now
 * @param {Record<string, string>} colours
 */
function paintFrame(context, { framed, points, playback }, colours) {
  const { x, y, wide, highAt } = points;
  context.strokeStyle = colours.ink;
  context.lineWidth = 2;
  if (framed.length) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let k = 0; k < framed.length; k += 1) {
      const node = framed[k];
      [left, right] = [min(left, x[node]), max(right, x[node])];
      [top, bottom] = [min(top, y[node]), max(bottom, y[node])];
    }
    context.strokeRect(
      max(left - 3, 1),
      max(top - 3, 1),
      right - left + wide + 6,
      bottom - top + highAt(framed[0]) + 6,
    );
  }
  const { node, kind } = playback.moment();
  if (node < 0) return;
  context.strokeStyle = kind === "forward" ? colours.forward : colours.hot;
  context.beginPath();
  context.arc(x[node] + wide / 2, y[node] + highAt(node) / 2, wide / 2 + 5, 0, 7);
  context.stroke();
}

/**
 * The node nearest to a click; -1 where there is none.
 * @param {ReturnType<typeof pointsIn>} points @param {HTMLCanvasElement} canvas @param {MouseEvent} event
 */
function nearest({ x, y, wide }, canvas, event) {
  const box = canvas.getBoundingClientRect();
  const px = ((event.clientX - box.left) / box.width) * canvas.width - wide / 2;
  const py = ((event.clientY - box.top) / box.height) * canvas.height;
  let best = -1;
  let least = Infinity;
  for (let node = 0; node < x.length; node += 1) {
    const far = (x[node] - px) ** 2 + (y[node] - py) ** 2;
    if (far < least) [least, best] = [far, node];
  }
  return best;
}
