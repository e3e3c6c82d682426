import assert from "node:assert/strict";
import test from "node:test";

import { collapseAll, expandAll, openAround, startExpanded, toggle, visibleItems } from "../src/model/blocks.js";

/**
 * Build the fields that model/blocks.js reads: `block` of each node, edges [operand, result], blocks [outer, kind,
 * name].
 */
function graphOf(block, edges, blocks = []) {
  return /** @type {any} */ ({
    count: block.length,
    edgeCount: edges.length,
    block: Int32Array.from(block),
    operand: Int32Array.from(edges, (edge) => edge[0]),
    result: Int32Array.from(edges, (edge) => edge[1]),
    blocks: [[-1, "graph"], ...blocks].map(([outer, kind, name = ""]) => ({ name, outer, kind })),
  });
}

const SCOPE = [0, "scope"];
// a, w -> [mul, add] -> neg: a is used twice inside the block, which is block 1.
const small = graphOf([0, 0, 1, 1, 0], [[0, 2], [1, 2], [2, 3], [0, 3], [3, 4]], [SCOPE]);

test("a closed block is one item, with one wire per incoming value", () => {
  const { items, wires, itemOf } = visibleItems(small, collapseAll());
  assert.deepEqual(items.map((item) => item.id), ["n0", "n1", "b1", "n4"]);
  assert.deepEqual(items[2], { id: "b1", node: -1, block: 1, parent: 0 });
  assert.deepEqual(wires, [
    { from: 0, to: 2, value: 0, edges: [0, 3] },
    { from: 1, to: 2, value: 1, edges: [1] },
    { from: 2, to: 3, value: 3, edges: [4] },
  ]);
  assert.deepEqual([0, 2, 3, 4].map(itemOf), [0, 2, 2, 3]);
});

test("an open block shows its nodes with their parent", () => {
  const { items, wires } = visibleItems(small, expandAll(small));
  assert.deepEqual(items.map((item) => item.id), ["n0", "n1", "n2", "n3", "n4"]);
  assert.deepEqual(items.map((item) => item.parent), [0, 0, 1, 1, 0]);
  assert.deepEqual(wires.map((wire) => wire.edges), [[0], [1], [2], [3], [4]]);
});

test("a*a keeps both arrows, from a node and from a closed block", () => {
  const square = graphOf([1, 1, 0], [[0, 1], [1, 2], [1, 2]], [SCOPE]);
  assert.equal(visibleItems(square, expandAll(square)).wires.length, 3);
  assert.deepEqual(visibleItems(square, collapseAll()).wires.map((wire) => wire.edges), [[1], [2]]);
});

test("a block inside a closed one is hidden, whether open or closed", () => {
  const nested = graphOf([0, 2, 2], [[0, 1], [1, 2]], [SCOPE, [1, "scope"]]);
  assert.deepEqual(visibleItems(nested, new Set([0, 2])).items.map((item) => item.id), ["n0", "b1"]);
  assert.deepEqual(visibleItems(nested, new Set([0, 1])).items.map((item) => item.id), ["n0", "b2"]);
});

test("revealing a node opens only its outer blocks", () => {
  const nested = graphOf([0, 2, 3], [[0, 1], [1, 2]], [SCOPE, [1, "scope"], SCOPE]);
  assert.deepEqual([...openAround(nested, new Set([0]), 1)].sort(), [0, 1, 2]);
});

test("toggle opens and closes, does not mutate its argument, and never closes the graph", () => {
  const before = new Set([0]);
  assert.deepEqual([...toggle(small, before, 1)], [0, 1]);
  assert.deepEqual([...toggle(small, new Set([0, 1]), 1)], [0]);
  assert.deepEqual([...toggle(small, before, 0)], [0]);
  assert.deepEqual([...before], [0]);
});

test("blocks open from the outside in within the budget, similar ones together or not at all", () => {
  const two = graphOf([1, 1, 1, 2, 2], [], [SCOPE, [0, "scope", "b"]]);
  assert.deepEqual([...startExpanded(two, 2)], [0]);
  assert.deepEqual([...startExpanded(two, 3)], [0, 2]);
  assert.deepEqual([...startExpanded(two, 4)], [0, 1]);
  assert.deepEqual([...startExpanded(two, 5)], [0, 1, 2]);
  const runs = graphOf([1, 1, 1, 2, 2], [], [[0, "run", "nodes 0–2"], [0, "run", "nodes 3–4"]]);
  assert.deepEqual([...startExpanded(runs, 4)], [0]);
  assert.deepEqual([...startExpanded(runs, 5)], [0, 1, 2]);
});

test("100,000 nodes can be collapsed, opened and expanded", () => {
  const count = 100_000;
  const edges = [];
  for (let node = 2; node < count; node += 1) edges.push([node - 1, node], [(node * 7919) % node, node]);
  const blocks = [];
  for (let block = 0; block < 100; block += 1) blocks.push([0, "run"]);
  for (let block = 0; block < 1000; block += 1) blocks.push([1 + Math.floor(block / 10), "run"]);
  const graph = graphOf(Array.from({ length: count }, (_, node) => 101 + Math.floor(node / 100)), edges, blocks);
  assert.equal(visibleItems(graph, startExpanded(graph)).items.length, 100);
});
