import assert from "node:assert/strict";
import { test } from "node:test";
import { contrastingInk, rampOffset, colourRamp, maxMagnitude, downsample, thumbnail } from "../src/drawing/heatcolour.js";
import { array } from "./helpers.js";
import { PALETTE } from "../src/drawing/palette.js";

test("zero has the colour of the card, and the scale is symmetric", () => {
  const ramp = colourRamp(PALETTE.light);
  assert.deepEqual([...ramp.subarray(rampOffset(0, 2), rampOffset(0, 2) + 3)], [255, 255, 255]);
  assert.deepEqual([...ramp.subarray(rampOffset(2, 2), rampOffset(2, 2) + 3)], [0x1b, 0x78, 0x37]);
  assert.deepEqual([...ramp.subarray(rampOffset(-9, 2), rampOffset(-9, 2) + 3)], [0xb3, 0x28, 0x7e]);
});

test("numbers on a cell are readable in both themes", () => {
  const luminance = (/** @type {number[]} */ rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const theme of /** @type {const} */ (["light", "dark"])) {
    const ramp = colourRamp(PALETTE[theme]);
    for (let k = 0; k < ramp.length; k += 3) {
      const ground = luminance([...ramp.subarray(k, k + 3)]);
      const ink = contrastingInk([...ramp.subarray(k, k + 3)]) === "#ffffff" ? 1 : 0;
      assert.ok((Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05) >= 4.5);
    }
  }
});

test("one scale for several arrays is the largest finite magnitude", () => {
  assert.equal(maxMagnitude(array([2], [1, -3]), array([2], [2, Infinity])), 3);
  assert.equal(maxMagnitude(array([1], [0])), 1);
  assert.equal(maxMagnitude(null), 1);
});

test("a downsampled heatmap keeps outliers and non-finite elements", () => {
  const small = downsample(array([2, 4], [1, -9, 0, 0, 2, 3, NaN, 1]), 2, 1);
  assert.deepEqual([...small.cells], [-9, NaN]);
});

test("a thumbnail is a bitmap with the bottom row first", () => {
  const { url, crosses } = thumbnail(array([2, 1], [2, NaN]), 2, colourRamp(PALETTE.light), 10, 10);
  const bytes = Buffer.from(url.split(",")[1], "base64");
  assert.equal(bytes.toString("latin1", 0, 2), "BM");
  assert.deepEqual([...bytes.subarray(54, 57)], [255, 255, 255]);
  assert.deepEqual([...bytes.subarray(58, 61)], [0x37, 0x78, 0x1b]);
  assert.deepEqual(crosses, [[0, 1]]);
});
