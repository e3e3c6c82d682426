import assert from "node:assert/strict";
import { test } from "node:test";
import { cellIndex, cellRectangles, tileCells, tileColumns } from "../src/base/tiles.js";
import { array } from "./helpers.js";

test("a displayed cell has its index in the full array", () => {
  const cells = array([2, 3, 4], new Array(24).fill(0));
  assert.deepEqual(cellIndex(cells, 4, 2), [1, 1, 2]);
  assert.deepEqual(cellIndex({ ...cells, step: [2, 2] }, 2, 1), [1, 1, 2]);
  assert.deepEqual(cellIndex(array([], [1]), 0, 0), []);
});

test("a box is a rectangle in each of the stacked matrices", () => {
  const cells = array([2, 3, 4], new Array(24).fill(0));
  assert.deepEqual(
    cellRectangles(cells, [
      [0, 2],
      [1, 2],
      [0, 4],
    ]),
    [
      [1, 0, 1, 4],
      [4, 0, 1, 4],
    ],
  );
  assert.deepEqual(cellRectangles(array([4], [1, 2, 3, 4]), [[2, 3]]), [[0, 2, 1, 1]]);
});

test("matrices are tiled, and the mapping of cells is invertible", () => {
  assert.deepEqual(
    [[5], [2, 3], [8, 4, 4], [2, 3, 8, 8], [64, 1, 28, 28], [3, 0, 4]].map(tileColumns),
    [1, 1, 4, 3, 8, 1],
  );
  const cells = { ...array([2, 3, 4, 4], new Array(96).fill(0)), rows: 8, cols: 12 };
  for (const [row, col] of [
    [0, 0],
    [5, 7],
    [3, 11],
    [7, 4],
  ]) {
    const place = cellIndex(cells, row, col);
    const box = place.map((at) => /** @type {[number, number]} */ ([at, at + 1]));
    assert.deepEqual(cellRectangles(cells, box), [[row, col, 1, 1]]);
  }
  assert.deepEqual(cellIndex(cells, 5, 7), [1, 1, 1, 3]);
  const flat = Float64Array.from({ length: 96 }, (_, k) => k);
  const drawn = tileCells(flat, cells.shape);
  assert.equal(drawn[5 * 12 + 7], 48 + 16 + 4 + 3);
  assert.deepEqual(tileCells(drawn, cells.shape, true), flat);
});

test("a box between the sampled rows of a downsampled array is empty", () => {
  const cells = { ...array([4, 4], new Array(16).fill(0)), step: [2, 2], rows: 2, cols: 2 };
  assert.deepEqual(
    cellRectangles(cells, [
      [1, 2],
      [0, 4],
    ]),
    [],
  );
  assert.deepEqual(
    cellRectangles(cells, [
      [2, 3],
      [0, 4],
    ]),
    [[1, 0, 1, 2]],
  );
});
