/** An interactive heatmap: hovering over a cell, or moving to it with the arrow keys, shows its index and value. */
import { isFinite, floor, max, min, round } from "../base/math.js";
import { h } from "../base/dom.js";
import { operandCells } from "./operandcells.js";
import { cellIndex, cellRectangles } from "../base/tiles.js";
import { crossPath, contrastingInk, rampOffset, colourRamp, maxMagnitude } from "./heatcolour.js";
import { fitNumber } from "../base/measure.js";
import { formatBrief, formatPretty } from "../base/notation.js";
import { keyDirection } from "./navigation.js";
import { currentColours } from "./style.js";

/** @typedef {import("../base/types.js").Cells} Cells */
/** @typedef {[number, number][]} Box */

/**
 * @typedef {object} Heatmap
 * @property {HTMLElement} element
 * @property {(box: Box | null) => void} mark frames the cells from which something else was computed
 * @property {() => void} redraw redraws after a theme change
 */

/**
 * Create a heatmap of `cells`. It paints itself once its element is attached to the player, where colours are defined.
 * @param {Cells} cells
 * @param {{scale?: number, size?: number, label?: string, hover?: (place: number[] | null) => void,
 *   pick?: (cell: number) => void}} [options] `scale` is the magnitude drawn in full colour, `size` the longest side in
 *   pixels; `hover` receives the index of the hovered cell, `pick` the row-major index of a clicked one
 * @returns {Heatmap}
 */
export function heatmap(cells, { scale = maxMagnitude(cells), size = 280, label = "", hover = () => {}, pick } = {}) {
  const { rows, cols } = cells;
  const side = max(0.02, min(size / max(cols, rows, 1), 46));
  const [w, height] = [cols, rows].map((count) => max(1, round(count * side)));
  const state = { at: /** @type {[number, number] | null} */ (null), box: /** @type {Box | null} */ (null) };
  const point = (/** @type {[number, number] | null} */ at) => {
    if (String(at) === String(state.at)) return;
    state.at = at;
    const index = at && cellIndex(cells, ...at);
    caption.textContent =
      at && index
        ? `[${index.join(", ")}] = ${formatPretty(cells.cells[at[0] * cols + at[1]])}${pick ? " · click to edit" : ""}`
        : captionText(cells, scale);
    redraw();
    hover(index);
  };
  const choose = () => {
    if (state.at) pick?.(cellIndex(cells, ...state.at).reduce((sum, at, axis) => sum * cells.shape[axis] + at, 0));
  };
  const leave = () => point(null);
  const canvas = /** @type {HTMLCanvasElement} */ (
    h("canvas", {
      role: "img",
      tabindex: 0,
      "aria-label": `${label}: ${captionText(cells, scale)}`,
      style: `width:${w}px;aspect-ratio:${w}/${height};${pick ? "cursor:pointer" : ""}`,
      onclick: choose,
      onpointerleave: leave,
      onblur: leave,
      onpointermove(/** @type {PointerEvent} */ event) {
        const box = canvas.getBoundingClientRect();
        const row = floor(((event.clientY - box.top) / box.height) * rows);
        const col = floor(((event.clientX - box.left) / box.width) * cols);
        point(row >= 0 && col >= 0 && row < rows && col < cols ? [row, col] : null);
      },
      onkeydown(/** @type {KeyboardEvent} */ event) {
        if (event.key === "Enter" && pick) return choose();
        const direction = keyDirection(event.key);
        if (!direction || !cells.cells.length) return;
        event.preventDefault();
        event.stopPropagation();
        const [row, col] = state.at ?? [-direction[0], -direction[1]];
        const clamp = (/** @type {number} */ x, /** @type {number} */ many) => max(0, min(many - 1, x));
        point([clamp(row + direction[0], rows), clamp(col + direction[1], cols)]);
      },
    })
  );
  const caption = h("figcaption", { "aria-live": "polite" }, captionText(cells, scale));
  const redraw = () => paintHeatmap(canvas, cells, { scale, ...state });
  const mark = (/** @type {Box | null} */ box) => {
    state.box = box;
    redraw();
  };
  new ResizeObserver(redraw).observe(canvas);
  return { element: h("figure", { class: "mg-heat" }, canvas, caption), mark, redraw };
}

/**
 * Return a `hover` callback that frames, in the operands' heatmaps, the cells from which a cell of the result was
 * computed. Null stands for an operand without a heatmap.
 * @param {import("../base/types.js").OpInfo} op
 * @param {Record<string, string>} attrs
 * @param {{operands: number[][], result: number[]}} shapes
 * @param {(Heatmap | null)[]} operands
 * @returns {(place: number[] | null) => void}
 */
export function linkOperands(op, attrs, shapes, operands) {
  return (index) => {
    const boxes = index && operandCells(op, attrs, shapes, index);
    operands.forEach((one, k) => one?.mark(boxes?.[k] ?? null));
  };
}

/** Return the caption shown while no cell is hovered. @param {Cells} cells @param {number} scale */
function captionText(cells, scale) {
  const parts = [`${cells.shape.join("×") || "scalar"} ${cells.dtype}`, `full colour at ±${formatBrief(scale)}`];
  if (cells.nan) parts.push(`${cells.nan} NaN, crossed`);
  if (cells.inf) parts.push(`${cells.inf} infinite, crossed`);
  if (cells.step) parts.push(`sampled: 1 of ${cells.step[0]} rows and 1 of ${cells.step[1]} columns`);
  return parts.join(" · ");
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Cells} cells
 * @param {{scale: number, at: [number, number] | null, box: Box | null}} how
 */
function paintHeatmap(canvas, cells, { scale, at, box }) {
  // Paint at the actual size: it may be smaller than requested, and scaling would blur minus signs one pixel high.
  const { clientWidth: w, clientHeight: height } = canvas;
  const [width, pixelHeight] = [w, height].map((length) => round(length * devicePixelRatio));
  Object.assign(canvas, { width, height: pixelHeight });
  const context = canvas.getContext("2d");
  if (!context || !cells.rows || !cells.cols) return;
  const colours = currentColours(canvas);
  const ramp = colourRamp(colours);
  context.imageSmoothingEnabled = false;
  context.scale(devicePixelRatio, devicePixelRatio);
  context.drawImage(heatmapBitmap(cells, scale, ramp), 0, 0, w, height);
  const [cw, ch] = [w / cells.cols, height / cells.rows];
  paintCells(context, cells, { scale, cw, ch, ramp });
  paintTileBorders(context, cells, cw, ch, colours.muted);
  const rectangles = box ? cellRectangles(cells, box).slice(0, 400) : [];
  for (const [r, c, rows, cols] of at ? [...rectangles, [...at, 1, 1]] : rectangles) {
    for (const [colour, lineWidth] of /** @type {[string, number][]} */ (Object.entries({ card: 4, ink: 2 }))) {
      context.strokeStyle = colours[colour];
      context.lineWidth = lineWidth;
      context.strokeRect(c * cw + 1, r * ch + 1, max(cols * cw - 2, 2), max(rows * ch - 2, 2));
    }
  }
}

/**
 * Draw lines between the matrices of an array with three or more dimensions.
 * @param {CanvasRenderingContext2D} context @param {Cells} cells @param {number} cw @param {number} ch
 * @param {string} colour
 */
function paintTileBorders(context, { shape, step, rows, cols }, cw, ch, colour) {
  if (shape.length < 3) return;
  const [rowsPerTile, colsPerTile] = [shape[shape.length - 2] / (step?.[0] ?? 1), shape[shape.length - 1] / (step?.[1] ?? 1)];
  if (rowsPerTile * ch < 6 || colsPerTile * cw < 6) return;
  context.fillStyle = colour;
  for (let row = rowsPerTile; row < rows; row += rowsPerTile) context.fillRect(0, row * ch - 0.5, cols * cw, 1);
  for (let col = colsPerTile; col < cols; col += colsPerTile) context.fillRect(col * cw - 0.5, 0, 1, rows * ch);
}

/** Return a canvas with one pixel for each cell. @param {Cells} cells @param {number} scale @param {Uint8Array} ramp */
function heatmapBitmap({ rows, cols, cells }, scale, ramp) {
  const image = new ImageData(cols, rows);
  cells.forEach((x, k) => {
    const from = rampOffset(x, scale);
    image.data.set([ramp[from], ramp[from + 1], ramp[from + 2], 255], 4 * k);
  });
  const bitmap = /** @type {HTMLCanvasElement} */ (h("canvas", { width: cols, height: rows }));
  bitmap.getContext("2d")?.putImageData(image, 0, 0);
  return bitmap;
}

/**
 * Draw crosses over non-finite cells, and the numbers themselves if cells are large enough.
 * @param {CanvasRenderingContext2D} context @param {Cells} cells
 * @param {{scale: number, cw: number, ch: number, ramp: Uint8Array}} how
 */
function paintCells(context, { cols, cells }, { scale, cw, ch, ramp }) {
  const showNumbers = cw >= 36 && ch >= 18;
  context.font = `11px ${getComputedStyle(context.canvas).fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  cells.forEach((x, k) => {
    const isFiniteCell = isFinite(x);
    if (isFiniteCell && !showNumbers) return;
    const [left, top] = [(k % cols) * cw, floor(k / cols) * ch];
    const from = rampOffset(x, scale);
    context.fillStyle = context.strokeStyle = contrastingInk([...ramp.subarray(from, from + 3)]);
    if (isFiniteCell) return context.fillText(fitNumber(x, cw - 8, 11, formatPretty), left + cw / 2, top + ch / 2 + 0.5);
    context.lineWidth = 1;
    context.stroke(new Path2D(crossPath(left, top, cw, ch)));
  });
}
