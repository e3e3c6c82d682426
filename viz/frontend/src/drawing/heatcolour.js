/**
 * Colours of arrays. Zero has the colour of the card, positive and negative values one hue each, on a scale that is
 * symmetric and shared by the value of a node and its gradient. The gradient is often much the smaller, so the colour
 * grows with the square root: 1% of the largest magnitude has 10% of its colour. Elements that are not finite have no
 * colour; a cross marks them, so that they can be recognised without colours.
 */
import { abs, isFinite, floor, max, min, round, sqrt } from "../base/math.js";

/** @typedef {import("../base/types.js").Cells} Cells */

/** Parse "#rrggbb" into red, green, blue. @param {string} colour @returns {[number, number, number]} */
export const parseColour = (colour) => {
  const channel = (/** @type {number} */ at) => parseInt(colour.slice(at, at + 2), 16);
  return [channel(1), channel(3), channel(5)];
};

/**
 * Return black or white, whichever has a contrast of at least 4.5:1 with a colour.
 * @param {number[]} rgb
 */
export function contrastingInk(rgb) {
  const [r, g, b] = rgb.map((c) => (c <= 10 ? c / 3295 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/**
 * Return the largest finite magnitude in some arrays, which is drawn in full colour; 1 if all are zero.
 * @param {(Cells | number | null)[]} all
 */
export function maxMagnitude(...all) {
  let largest = 0;
  for (const one of all) {
    if (typeof one === "number") largest = max(largest, isFinite(one) ? abs(one) : 0);
    else if (one) largest = max(largest, abs(one.min ?? 0), abs(one.max ?? 0));
  }
  return largest || 1;
}

/**
 * Return the scale of each tensor: the largest magnitude in its value and in the running sums of its gradient.
 * @param {import("../base/types.js").Graph} graph @returns {Map<number, number>}
 */
export function tensorScales(graph) {
  const quantities = new Map([...graph.tensors.keys()].map((node) => [node, [graph.numbers.value[node]]]));
  for (const { edge, total } of graph.numbers.runs)
    total.forEach((sum, k) => quantities.get(graph.operand[edge[k]])?.push(sum));
  return new Map([...quantities].map(([node, all]) => [node, maxMagnitude(...all)]));
}

/**
 * Return 512 colours from −scale to +scale.
 * @param {Record<string, string>} colours
 * @returns {Uint8Array} RGB bytes
 */
export function colourRamp(colours) {
  const [zero, plus, minus] = [colours.zero, colours.plus, colours.minus].map(parseColour);
  const ramp = new Uint8Array(512 * 3);
  for (let k = 0; k < 512; k += 1) {
    const t = (k - 256) / 255;
    const end = t < 0 ? minus : plus;
    for (let c = 0; c < 3; c += 1)
      ramp[3 * k + c] = round(zero[c] + (end[c] - zero[c]) * sqrt(min(abs(t), 1)));
  }
  return ramp;
}

/**
 * Return the offset of a number in the ramp; that of zero if it is not finite.
 * @param {number} x @param {number} scale
 */
export const rampOffset = (x, scale) =>
  3 * (256 + (isFinite(x) ? round(255 * max(-1, min(1, x / scale))) : 0));

/**
 * Return a cross over a cell that is not finite.
 * @param {number} x @param {number} y @param {number} w @param {number} h
 */
export const crossPath = (x, y, w, h) => `M${x} ${y}l${w} ${h}m0 ${-h}l${-w} ${h}`;

/**
 * Downsample a heatmap to fewer pixels than cells. Each pixel shows a non-finite cell, or else the one of largest
 * magnitude, so that no outlier is lost.
 * @param {Cells} cells
 * @param {number} cols maximum
 * @param {number} rows maximum
 */
export function downsample(cells, cols, rows) {
  const [w, h] = [max(1, min(cols, cells.cols)), max(1, min(rows, cells.rows))];
  const result = new Float64Array(w * h);
  for (let r = 0; r < cells.rows; r += 1) {
    const line = floor((r * h) / cells.rows) * w;
    for (let c = 0; c < cells.cols; c += 1) {
      const at = line + floor((c * w) / cells.cols);
      const x = cells.cells[r * cells.cols + c];
      if (!isFinite(x) || (isFinite(result[at]) && abs(x) > abs(result[at]))) result[at] = x;
    }
  }
  return { w, h, cells: result };
}

/**
 * Return a heatmap as the data URL of a bitmap, and the pixels on which to draw crosses.
 * @param {Cells} cells
 * @param {number} scale
 * @param {Uint8Array} ramp
 * @param {number} [cols] maximum
 * @param {number} [rows] maximum
 */
export function thumbnail(cells, scale, ramp, cols = cells.cols, rows = cells.rows) {
  const downsampled = downsample(cells, cols, rows);
  const stride = (downsampled.w * 3 + 3) & ~3;
  const bytes = new Uint8Array(54 + stride * downsampled.h);
  const view = new DataView(bytes.buffer);
  bytes.set([0x42, 0x4d]);
  view.setUint32(2, bytes.length, true);
  view.setUint32(10, 54, true);
  view.setUint32(14, 40, true);
  view.setInt32(18, downsampled.w, true);
  view.setInt32(22, downsampled.h, true);
  view.setUint16(26, 1, true);
  view.setUint16(28, 24, true);
  /** @type {[number, number][]} */
  const crosses = [];
  for (let r = 0; r < downsampled.h; r += 1) {
    for (let c = 0; c < downsampled.w; c += 1) {
      const x = downsampled.cells[r * downsampled.w + c];
      const at = 54 + (downsampled.h - 1 - r) * stride + 3 * c;
      const from = rampOffset(x, scale);
      for (let k = 0; k < 3; k += 1) bytes[at + k] = ramp[from + 2 - k];
      if (!isFinite(x)) crosses.push([c, r]);
    }
  }
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return { url: `data:image/bmp;base64,${btoa(binary)}`, crosses, w: downsampled.w, h: downsampled.h };
}
