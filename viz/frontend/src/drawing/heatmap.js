/**
 * A heatmap to look into: pointing at a cell, or moving over it with the arrow keys, tells its place and its number.
 */
import { h } from "../panels/dom.js";
import { operandCells } from "./operands.js";
import { inkOn, placeOf, rampAt, rampOf, rectanglesIn, scaleOf } from "./heatcolour.js";
import { fitNumber } from "./measure.js";
import { pretty } from "../engine/notation.js";
import { coloursAt } from "./style.js";

/** @typedef {import("../types.js").Cells} Cells */
/** @typedef {[number, number][]} Box */

/**
 * @typedef {object} Heatmap
 * @property {HTMLElement} element
 * @property {(box: Box | null) => void} mark shows which cells something else comes from
 * @property {() => void} redraw after the theme changed
 */

/**
 * A heatmap of `cells`. It draws itself once its element is in the player, where colours are known.
 * @param {Cells} cells
 * @param {{scale?: number, size?: number, label?: string, hover?: (place: number[] | null) => void,
 *   pick?: (cell: number) => void}} [options] `scale` is the number of the full colour, `size` the longest side in
 *   pixels; `hover` hears the cell pointed at, `pick` which one was clicked or entered, counted row by row
 * @returns {Heatmap}
 */
export function heatmap(cells, { scale = scaleOf(cells), size = 280, label = "", hover = () => {}, pick } = {}) {
  const side = Math.max(0.02, Math.min(size / Math.max(cells.cols, 1), size / Math.max(cells.rows, 1), 46));
  const [w, hgt] = [Math.max(1, Math.round(cells.cols * side)), Math.max(1, Math.round(cells.rows * side))];
  const canvas = /** @type {HTMLCanvasElement} */ (
    h("canvas", {
      role: "img",
      tabindex: 0,
      "aria-label": `${label}: ${summary(cells, scale)}`,
      style: `width:${w}px;aspect-ratio:${w}/${hgt};${pick ? "cursor:pointer" : ""}`,
    })
  );
  const says = h("figcaption", { "aria-live": "polite" }, summary(cells, scale));
  const state = { at: /** @type {[number, number] | null} */ (null), box: /** @type {Box | null} */ (null) };
  const redraw = () => paintHeat(canvas, cells, { scale, ...sizeNow(canvas, w, hgt), ...state });
  const point = (/** @type {[number, number] | null} */ at) => {
    if (at?.[0] === state.at?.[0] && at?.[1] === state.at?.[1]) return;
    state.at = at;
    const place = at && placeOf(cells, ...at);
    says.textContent =
      at && place
        ? `[${place.join(", ")}] = ${pretty(cells.cells[at[0] * cells.cols + at[1]])}${pick ? " · click to change it" : ""}`
        : summary(cells, scale);
    redraw();
    hover(place);
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / box.height) * cells.rows);
    const col = Math.floor(((event.clientX - box.left) / box.width) * cells.cols);
    point(row >= 0 && col >= 0 && row < cells.rows && col < cells.cols ? [row, col] : null);
  });
  const choose = () => {
    if (state.at) pick?.(placeOf(cells, ...state.at).reduce((sum, at, axis) => sum * cells.shape[axis] + at, 0));
  };
  canvas.addEventListener("click", choose);
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("blur", () => point(null));
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && pick) return choose();
    const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!way || !cells.cells.length) return;
    event.preventDefault();
    event.stopPropagation();
    const [row, col] = state.at ?? [-way[0], -way[1]];
    const within = (/** @type {number} */ x, /** @type {number} */ many) => Math.max(0, Math.min(many - 1, x));
    point([within(row + way[0], cells.rows), within(col + way[1], cells.cols)]);
  });
  const mark = (/** @type {Box | null} */ box) => {
    state.box = box;
    redraw();
  };
  new ResizeObserver(redraw).observe(canvas);
  return { element: h("figure", { class: "mg-heat" }, canvas, says), mark, redraw };
}

/**
 * Lets a cell of a result show the cells of the operands that it was computed from. Null stands for an operand that has
 * no heatmap. Returns what the heatmap of the result needs as `hover`.
 * @param {string} op
 * @param {Record<string, string>} attrs
 * @param {{operands: number[][], result: number[]}} shapes
 * @param {(Heatmap | null)[]} operands
 * @returns {(place: number[] | null) => void}
 */
export function linkTo(op, attrs, shapes, operands) {
  return (place) => {
    const boxes = place && operandCells(op, attrs, shapes, place);
    operands.forEach((one, k) => one?.mark(boxes?.[k] ?? null));
  };
}

/**
 * How large a picture is shown: there may be less room than it would like, and what is drawn on it must not be scaled.
 * @param {HTMLCanvasElement} canvas @param {number} w @param {number} hgt
 */
const sizeNow = ({ clientWidth }, w, hgt) => ({ w: clientWidth || w, h: ((clientWidth || w) / w) * hgt });

/** What is to be said of an array at rest. @param {Cells} cells @param {number} scale */
function summary(cells, scale) {
  const parts = [`${cells.shape.join("×") || "scalar"} ${cells.dtype}`, `full colour at ±${pretty(scale)}`];
  if (cells.nan) parts.push(`${cells.nan} NaN, crossed`);
  if (cells.inf) parts.push(`${cells.inf} infinite, crossed`);
  if (cells.step) parts.push(`drawn from 1 of ${cells.step[0]} rows and 1 of ${cells.step[1]} columns`);
  return parts.join(" · ");
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Cells} cells
 * @param {{scale: number, w: number, h: number, at: [number, number] | null, box: Box | null}} how
 */
function paintHeat(canvas, cells, { scale, w, h: height, at, box }) {
  const ratio = canvas.ownerDocument.defaultView?.devicePixelRatio ?? 1;
  canvas.width = Math.round(w * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  if (!context || !cells.rows || !cells.cols) return;
  const colours = coloursAt(canvas);
  const ramp = rampOf(colours);
  context.imageSmoothingEnabled = false;
  context.scale(ratio, ratio);
  context.drawImage(heatBitmap(canvas.ownerDocument, cells, scale, ramp), 0, 0, w, height);
  const [cw, ch] = [w / cells.cols, height / cells.rows];
  paintCells(context, cells, { scale, cw, ch, ramp });
  const frame = (/** @type {[number, number, number, number]} */ [r, c, rows, cols]) => {
    for (const [colour, wide] of /** @type {[string, number][]} */ ([
      [colours.card, 4],
      [colours.ink, 2],
    ])) {
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.strokeRect(c * cw + 1, r * ch + 1, Math.max(cols * cw - 2, 2), Math.max(rows * ch - 2, 2));
    }
  };
  paintSeams(context, cells, cw, ch, colours.muted ?? colours.ink);
  if (box) rectanglesIn(cells, box).slice(0, 400).forEach(frame);
  if (at) frame([at[0], at[1], 1, 1]);
}

/**
 * Lines between the matrices of an array of three dimensions and more.
 * @param {CanvasRenderingContext2D} context @param {Cells} cells @param {number} cw @param {number} ch
 * @param {string} colour
 */
function paintSeams(context, { shape, step, rows, cols }, cw, ch, colour) {
  if (shape.length < 3) return;
  const [high, wide] = [shape[shape.length - 2] / (step?.[0] ?? 1), shape[shape.length - 1] / (step?.[1] ?? 1)];
  if (high * ch < 6 || wide * cw < 6) return;
  context.fillStyle = colour;
  for (let row = high; row < rows; row += high) context.fillRect(0, row * ch - 0.5, cols * cw, 1);
  for (let col = wide; col < cols; col += wide) context.fillRect(col * cw - 0.5, 0, 1, rows * ch);
}

/**
 * A canvas with a pixel a cell.
 * @param {Document} page @param {Cells} cells @param {number} scale @param {Uint8Array} ramp
 */
export function heatBitmap(page, cells, scale, ramp) {
  const small = page.createElement("canvas");
  [small.width, small.height] = [cells.cols, cells.rows];
  const context = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d"));
  const image = context.createImageData(cells.cols, cells.rows);
  for (let k = 0; k < cells.cells.length; k += 1) {
    const from = rampAt(Number.isFinite(cells.cells[k]) ? cells.cells[k] : 0, scale);
    image.data.set([ramp[from], ramp[from + 1], ramp[from + 2], 255], 4 * k);
  }
  context.putImageData(image, 0, 0);
  return small;
}

/**
 * Crosses where there is no finite number, and the numbers themselves where cells are large enough.
 * @param {CanvasRenderingContext2D} context @param {Cells} cells
 * @param {{scale: number, cw: number, ch: number, ramp: Uint8Array}} how
 */
function paintCells(context, cells, { scale, cw, ch, ramp }) {
  const written = cw >= 36 && ch >= 18;
  context.font = `11px ${coloursFont(context)}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let k = 0; k < cells.cells.length; k += 1) {
    const x = cells.cells[k];
    const finite = Number.isFinite(x);
    if (finite && !written) continue;
    const [left, top] = [(k % cells.cols) * cw, Math.floor(k / cells.cols) * ch];
    const from = rampAt(finite ? x : 0, scale);
    context.fillStyle = context.strokeStyle = inkOn([ramp[from], ramp[from + 1], ramp[from + 2]]);
    if (!finite) {
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(left, top);
      context.lineTo(left + cw, top + ch);
      context.moveTo(left + cw, top);
      context.lineTo(left, top + ch);
      context.stroke();
    }
    if (written && finite) context.fillText(fitNumber(x, cw - 8, 11, pretty), left + cw / 2, top + ch / 2 + 0.5);
  }
}

/** @param {CanvasRenderingContext2D} context */
const coloursFont = (context) => getComputedStyle(context.canvas).fontFamily || "sans-serif";
