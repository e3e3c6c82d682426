/** Canvas rendering of a large drawing that is too small to read: a rectangle for each card, a line for each edge. */
import { max, min, round } from "../base/math.js";
import { HEADER_HEIGHT, ROW_HEIGHT } from "./cards.js";
import { wireProgress } from "./appearance.js";
import { OP } from "../model/trace.js";

/** @typedef {import("./viewport.js").Rect} Rect */
/**
 * The state to paint.
 * @typedef {{graph: import("../base/types.js").Graph, playback: import("../base/types.js").Playback,
 *   scene: import("./scene.js").Scene, progress: ReturnType<typeof import("./appearance.js").trackProgress>,
 *   colours: Record<string, string>}} PaintState
 */
/** @typedef {(colour: string, alpha: number, x: number, y: number, w: number, h: number) => void} Fill */

const MIN_HEADER_SCALE = 0.16; // minimum scale at which a card has a header; below it is a single rectangle

/** Whether two rectangles intersect. @param {Rect} a @param {Rect} b */
export const intersects = (a, b) => a.x <= b.x + b.w && a.x + a.w >= b.x && a.y <= b.y + b.h && a.y + a.h >= b.y;

/** Whether a wire intersects a rectangle. @param {{points: [number, number][]}} wire @param {Rect} part */
export function wireIntersects({ points }, { x, y, w, h }) {
  for (let k = points.length - 1; k > 0 && points[k][0] >= x; k -= 1) {
    const [[from, a], [to, b]] = [points[k - 1], points[k]];
    if (from <= x + w && to >= x && min(a, b) <= y + h && max(a, b) >= y) return true;
  }
  return false;
}

/**
 * Paint a part of the drawing at its position in the stage.
 * @param {HTMLCanvasElement} canvas @param {PaintState} state @param {Rect} part @param {number} scale
 */
export function paintOverview(canvas, state, part, scale) {
  const ratio = scale * devicePixelRatio;
  const [left, top, width, height] = [part.x, part.y, part.w, part.h].map((length) => round(length * ratio));
  Object.assign(canvas, { width, height });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, -left, -top);
  for (const [side, pixels] of Object.entries({ left, top, width, height }))
    canvas.style.setProperty(side, `${pixels / devicePixelRatio}px`);
  /** @type {Fill} */
  const fill = (colour, alpha, x, y, w, h) => {
    context.globalAlpha = alpha;
    context.fillStyle = state.colours[colour];
    context.fillRect(x, y, w, h);
  };
  for (const { x, y, w, h } of state.scene.hulls) {
    fill("ink", 0.025, x, y, w, h);
    fill("rim", 0.55, x, y, w, 22);
    for (const at of [y, y + h]) fill("line", 1, x, at, w, 1 / scale);
    for (const at of [x, x + w]) fill("line", 1, at, y, 1 / scale, h);
  }
  paintWires(context, state, part, scale);
  state.scene.items.forEach((item) => {
    if (intersects(item, part)) paintCard(fill, state, item, scale >= MIN_HEADER_SCALE);
  });
}

/**
 * @param {CanvasRenderingContext2D} context @param {PaintState} state @param {Rect} part @param {number} scale
 */
function paintWires(context, state, part, scale) {
  const paths = { future: new Path2D(), "": new Path2D(), done: new Path2D() };
  state.scene.wires.forEach((wire) => {
    if (!wireIntersects(wire, part)) return;
    const path = paths[wireProgress(state.playback, wire)];
    wire.points.forEach((point, k) => (k ? path.lineTo(...point) : path.moveTo(...point)));
  });
  for (const [time, path] of Object.entries(paths)) {
    context.strokeStyle = state.colours[{ future: "rim", done: "heat" }[time] ?? "line"];
    context.lineWidth = (time === "done" ? 1.2 : 0.6) / scale;
    context.stroke(path);
  }
}

/**
 * Paint a rectangle in the colour of its border; if `isDetailed`, also its background, header and gradient row.
 * @param {Fill} fill @param {PaintState} now @param {import("./scene.js").SceneItem} item @param {boolean} isDetailed
 */
function paintCard(fill, { graph, playback, progress }, { node, block, x, y, w, h, card }, isDetailed) {
  const { kind, alarm, output, picture } = card;
  const done = progress.done[block];
  const isPending = done ? done.of > 0 && !done.forward : graph.kind[node] === OP && !playback.isComputed(node);
  const headerColour = output ? "output" : kind === "leaf" ? "leaf" : "";
  const edge = alarm || kind === "broken" ? "alarm" : isPending ? "rim" : headerColour || "line";
  const alpha = !done && playback.isUnavailable(node) ? 0.35 : 1;
  fill(!isDetailed && kind === "op" && edge === "line" ? "muted" : edge, alpha, x, y, w, h);
  if (!isDetailed) return;
  const rim = alarm ? 2.5 : 1.25;
  const inside = w - 2 * rim;
  fill(isPending ? "page" : "card", alpha, x + rim, y + rim, inside, h - 2 * rim);
  if (isPending || (kind === "constant" && !picture)) return;
  fill(headerColour || (done ? "rim" : "op"), alpha, x + rim, y + rim, inside, HEADER_HEIGHT - rim);
  if (picture) fill("wash", alpha, x + w / 2, y + HEADER_HEIGHT, w / 2 - rim, picture.h + 24);
  else if (!done && kind !== "broken") fill("wash", alpha, x + rim, y + HEADER_HEIGHT + ROW_HEIGHT, inside, h - HEADER_HEIGHT - ROW_HEIGHT - rim);
}
