import assert from "node:assert/strict";
import { test } from "node:test";
import { inkOn, placeOf, rampAt, rampOf, rectanglesIn, scaleOf, shrunk, thumbnail, tiled, tilesAcross } from "../src/drawing/heatcolour.js";
import { PALETTE } from "../src/drawing/palette.js";

/** @param {number[]} shape @param {number[]} cells @param {object} [more] @returns {any} */
function array(shape, cells, more = {}) {
  const finite = cells.filter(Number.isFinite);
  const cols = shape.at(-1) ?? 1;
  const span = { min: Math.min(...finite), max: Math.max(...finite) };
  return {
    shape,
    dtype: "float32",
    size: cells.length,
    cells: Float64Array.from(cells),
    rows: cells.length / cols,
    cols,
    step: null,
    ...span,
    ...more,
  };
}

test("zero has the colour of the card, and both ends are equally far", () => {
  const ramp = rampOf(PALETTE.light);
  assert.deepEqual([...ramp.subarray(rampAt(0, 2), rampAt(0, 2) + 3)], [255, 255, 255]);
  assert.deepEqual([...ramp.subarray(rampAt(2, 2), rampAt(2, 2) + 3)], [0x1b, 0x78, 0x37]);
  assert.deepEqual([...ramp.subarray(rampAt(-9, 2), rampAt(-9, 2) + 3)], [0xb3, 0x28, 0x7e]);
});

test("numbers on a cell can be read in both themes, whatever its colour", () => {
  const luminance = (/** @type {number[]} */ rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const theme of /** @type {const} */ (["light", "dark"])) {
    const ramp = rampOf(PALETTE[theme]);
    for (let k = 0; k < ramp.length; k += 3) {
      const ground = luminance([...ramp.subarray(k, k + 3)]);
      const ink = inkOn([...ramp.subarray(k, k + 3)]) === "#ffffff" ? 1 : 0;
      assert.ok((Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05) >= 4.5);
    }
  }
});

test("one scale for several arrays is the largest finite magnitude", () => {
  assert.equal(scaleOf(array([2], [1, -3]), array([2], [2, Infinity])), 3);
  assert.equal(scaleOf(array([1], [0])), 1);
  assert.equal(scaleOf(null), 1);
});

test("a smaller picture keeps outliers and what is not finite", () => {
  const small = shrunk(array([2, 4], [1, -9, 0, 0, 2, 3, NaN, 1]), 2, 1);
  assert.deepEqual([...small.cells], [-9, NaN]);
});

test("a thumbnail is a bitmap with the bottom row first", () => {
  const { url, crosses } = thumbnail(array([2, 1], [2, NaN]), 2, rampOf(PALETTE.light), 10, 10);
  const bytes = Buffer.from(url.split(",")[1], "base64");
  assert.equal(bytes.toString("latin1", 0, 2), "BM");
  assert.deepEqual([...bytes.subarray(54, 57)], [255, 255, 255]);
  assert.deepEqual([...bytes.subarray(58, 61)], [0x37, 0x78, 0x1b]);
  assert.deepEqual(crosses, [[0, 1]]);
});

test("a shown cell knows its place in the whole array", () => {
  const cells = array([2, 3, 4], new Array(24).fill(0));
  assert.deepEqual(placeOf(cells, 4, 2), [1, 1, 2]);
  assert.deepEqual(placeOf({ ...cells, step: [2, 2] }, 2, 1), [1, 1, 2]);
  assert.deepEqual(placeOf(array([], [1]), 0, 0), []);
});

test("a box is a rectangle in each of the stacked matrices", () => {
  const cells = array([2, 3, 4], new Array(24).fill(0));
  assert.deepEqual(
    rectanglesIn(cells, [
      [0, 2],
      [1, 2],
      [0, 4],
    ]),
    [
      [1, 0, 1, 4],
      [4, 0, 1, 4],
    ],
  );
  assert.deepEqual(rectanglesIn(array([4], [1, 2, 3, 4]), [[2, 3]]), [[0, 2, 1, 1]]);
});

test("matrices stand side by side, and each cell is found in both directions", () => {
  assert.deepEqual(
    [[5], [2, 3], [8, 4, 4], [2, 3, 8, 8], [64, 1, 28, 28], [3, 0, 4]].map(tilesAcross),
    [1, 1, 4, 3, 8, 1],
  );
  const cells = { ...array([2, 3, 4, 4], new Array(96).fill(0)), rows: 8, cols: 12 };
  for (const [row, col] of [
    [0, 0],
    [5, 7],
    [3, 11],
    [7, 4],
  ]) {
    const place = placeOf(cells, row, col);
    const box = place.map((at) => /** @type {[number, number]} */ ([at, at + 1]));
    assert.deepEqual(rectanglesIn(cells, box), [[row, col, 1, 1]]);
  }
  assert.deepEqual(placeOf(cells, 5, 7), [1, 1, 1, 3]);
  const flat = Float64Array.from({ length: 96 }, (_, k) => k);
  const drawn = tiled(flat, cells.shape);
  assert.equal(drawn[5 * 12 + 7], 48 + 16 + 4 + 3);
  assert.deepEqual(tiled(drawn, cells.shape, true), flat);
});

test("a box between the kept rows of a downsampled array shows nothing", () => {
  const cells = { ...array([4, 4], new Array(16).fill(0)), step: [2, 2], rows: 2, cols: 2 };
  assert.deepEqual(
    rectanglesIn(cells, [
      [1, 2],
      [0, 4],
    ]),
    [],
  );
  assert.deepEqual(
    rectanglesIn(cells, [
      [2, 3],
      [0, 4],
    ]),
    [[1, 0, 1, 2]],
  );
});
