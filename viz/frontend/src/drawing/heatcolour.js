/**
 * Arrays as colours: zero is the colour of the card, blue above it and orange below, on one scale that is the same on
 * both sides, and the same for the value of a node and its gradient. That is often much the smaller of the two, so the
 * colour grows with the square root: a hundredth of the largest number still has a tenth of its colour. What is no
 * finite number has no colour; it is marked by a cross, so that it can be told without colours.
 */
import { abs, finite, floor, max, min, round, sqrt } from "../base/math.js";

/** @typedef {import("../base/types.js").Cells} Cells */

/** Red, green, blue of "#rrggbb". @param {string} colour @returns {[number, number, number]} */
export const rgbOf = (colour) => {
  const channel = (/** @type {number} */ at) => parseInt(colour.slice(at, at + 2), 16);
  return [channel(1), channel(3), channel(5)];
};

/**
 * Black or white, whichever can be read on a colour: one of them has a contrast of 4.5 to 1.
 * @param {number[]} rgb
 */
export function inkOn(rgb) {
  const [r, g, b] = rgb.map((c) => (c <= 10 ? c / 3295 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/**
 * The largest finite magnitude in some arrays, 1 where all is zero: the number that has the full colour.
 * @param {(Cells | number | null)[]} all
 */
export function scaleOf(...all) {
  let most = 0;
  for (const one of all) {
    if (typeof one === "number") most = max(most, finite(one) ? abs(one) : 0);
    else if (one) most = max(most, abs(one.min ?? 0), abs(one.max ?? 0));
  }
  return most || 1;
}

/**
 * For each tensor the number of the full colour: of its value and of all sums that its gradient goes through.
 * @param {import("../base/types.js").Graph} graph @returns {Map<number, number>}
 */
export function scalesOf(graph) {
  const held = new Map([...graph.tensors.keys()].map((node) => [node, [graph.numbers.value[node]]]));
  for (const { edge, total } of graph.numbers.runs)
    total.forEach((sum, k) => held.get(graph.operand[edge[k]])?.push(sum));
  return new Map([...held].map(([node, all]) => [node, scaleOf(...all)]));
}

/**
 * 512 colours from −scale to +scale.
 * @param {Record<string, string>} colours
 * @returns {Uint8Array} three bytes each
 */
export function rampOf(colours) {
  const [zero, plus, minus] = [colours.zero, colours.plus, colours.minus].map(rgbOf);
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
 * The place of a number in the ramp, times three; zero's where it is not finite.
 * @param {number} x @param {number} scale
 */
export const rampAt = (x, scale) =>
  3 * (256 + (finite(x) ? round(255 * max(-1, min(1, x / scale))) : 0));

/**
 * A cross over a cell that has no finite number.
 * @param {number} x @param {number} y @param {number} w @param {number} h
 */
export const crossPath = (x, y, w, h) => `M${x} ${y}l${w} ${h}m0 ${-h}l${-w} ${h}`;

/**
 * The cell that stands for each pixel where a picture has fewer pixels than cells: what is not finite, or else the one
 * of largest magnitude, so that no outlier is lost.
 * @param {Cells} cells
 * @param {number} cols at most
 * @param {number} rows at most
 */
export function shrunk(cells, cols, rows) {
  const [w, h] = [max(1, min(cols, cells.cols)), max(1, min(rows, cells.rows))];
  const out = new Float64Array(w * h);
  for (let r = 0; r < cells.rows; r += 1) {
    const line = floor((r * h) / cells.rows) * w;
    for (let c = 0; c < cells.cols; c += 1) {
      const at = line + floor((c * w) / cells.cols);
      const x = cells.cells[r * cells.cols + c];
      if (!finite(x) || (finite(out[at]) && abs(x) > abs(out[at]))) out[at] = x;
    }
  }
  return { w, h, cells: out };
}

/**
 * A small picture as the address of a bitmap, and where crosses are to be drawn on it, in pixels of the picture.
 * @param {Cells} cells
 * @param {number} scale
 * @param {Uint8Array} ramp
 * @param {number} [cols] at most
 * @param {number} [rows] at most
 */
export function thumbnail(cells, scale, ramp, cols = cells.cols, rows = cells.rows) {
  const small = shrunk(cells, cols, rows);
  const stride = (small.w * 3 + 3) & ~3;
  const bytes = new Uint8Array(54 + stride * small.h);
  const view = new DataView(bytes.buffer);
  bytes.set([0x42, 0x4d]);
  view.setUint32(2, bytes.length, true);
  view.setUint32(10, 54, true);
  view.setUint32(14, 40, true);
  view.setInt32(18, small.w, true);
  view.setInt32(22, small.h, true);
  view.setUint16(26, 1, true);
  view.setUint16(28, 24, true);
  /** @type {[number, number][]} */
  const crosses = [];
  for (let r = 0; r < small.h; r += 1) {
    for (let c = 0; c < small.w; c += 1) {
      const x = small.cells[r * small.w + c];
      const at = 54 + (small.h - 1 - r) * stride + 3 * c;
      const from = rampAt(x, scale);
      for (let k = 0; k < 3; k += 1) bytes[at + k] = ramp[from + 2 - k];
      if (!finite(x)) crosses.push([c, r]);
    }
  }
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return { url: `data:image/bmp;base64,${btoa(binary)}`, crosses, w: small.w, h: small.h };
}
