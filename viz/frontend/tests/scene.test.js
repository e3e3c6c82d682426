import assert from "node:assert/strict";
import { test } from "node:test";
import { startExpanded, visibleItems } from "../src/model/blocks.js";
import { alarmLevels, blockContents, nodeCard, numberWidths, formatSum } from "../src/drawing/cards.js";
import { curvePath, yAt, midpointOf, samplePoints } from "../src/drawing/curves.js";
import { createPlayback, createTimeline } from "../src/model/history.js";
import { nodeAppearance, allNodes, productText, trackProgress, nodeLabel } from "../src/drawing/appearance.js";
import { labelPosition } from "../src/drawing/overlay.js";
import { neighbour, keyDirection } from "../src/drawing/navigation.js";
import { scene } from "../src/drawing/scene.js";
import { decode } from "../src/model/trace.js";
import { randomFrom, randomTrace, scalarTrace, shared } from "./helpers.js";

/** @param {import("../src/base/types.js").Graph} graph */
const sceneOf = (graph) => scene(graph, visibleItems(graph, startExpanded(graph)));

test("a*a has two wires, and every visible edge has one", () => {
  const graph = shared();
  const drawn = sceneOf(graph);
  const square = drawn.wires.filter((wire) => drawn.items[wire.from].id === "n0" && drawn.items[wire.to].id === "n5");
  assert.equal(square.length, 2);
  for (const [k, wire] of drawn.wires.entries()) for (const edge of wire.edges) assert.equal(drawn.wireOf[edge], k);
});

test("boxes are inside the scene, do not overlap, and are joined by wires", () => {
  for (let seed = 0; seed < 20; seed += 1) {
    const graph = decode(randomTrace(randomFrom(seed), 40));
    const { items, wires, width, height } = sceneOf(graph);
    for (const [k, one] of items.entries()) {
      assert.ok(one.x >= 0 && one.y >= 0 && one.x + one.w <= width && one.y + one.h <= height);
      for (const other of items.slice(k + 1)) {
        const across = Math.min(one.x + one.w, other.x + other.w) - Math.max(one.x, other.x);
        const down = Math.min(one.y + one.h, other.y + other.h) - Math.max(one.y, other.y);
        assert.ok(across <= 0 || down <= 0, `${one.id} lies on ${other.id}`);
      }
    }
    for (const { from, to, points } of wires) {
      assert.ok(Math.abs(points[0][0] - (items[from].x + items[from].w)) < 0.02);
      assert.ok(Math.abs(points[points.length - 1][0] - items[to].x) < 0.02);
    }
  }
});

test("a card fits every number and every sum of a pass", () => {
  const graph = shared();
  const play = createPlayback(graph, createTimeline(graph));
  const rooms = numberWidths(graph, [0]);
  assert.equal(rooms.get(0)?.of, 3);
  const widest = Math.max(...[-10, -20, -32].map((x) => String(x).length));
  assert.ok((rooms.get(0)?.grad ?? 0) > widest * 5);
  const card = nodeCard(graph, 0, /** @type {any} */ (rooms.get(0)), alarmLevels(graph));
  play.seek(play.timeline.last);
  assert.deepEqual(card, nodeCard(graph, 0, /** @type {any} */ (numberWidths(graph, [0]).get(0)), alarmLevels(graph)));
});

test("a node is pale, then known, partial and final", () => {
  const graph = shared();
  const play = createPlayback(graph, createTimeline(graph));
  assert.deepEqual([nodeAppearance(graph, play, 2).isPending, nodeAppearance(graph, play, 2).value], [true, null]);
  play.seek(1);
  assert.deepEqual([nodeAppearance(graph, play, 2).isPending, nodeAppearance(graph, play, 2).value], [false, -6]);
  assert.equal(nodeAppearance(graph, play, 0).placeholder, "—");
  play.seek(9);
  assert.equal(nodeAppearance(graph, play, 0).sum, "Σ 2 of 3");
  assert.match(nodeLabel(graph, nodeAppearance(graph, play, 0), 0, ""), /gradient −20\.0 so far, 2 of 3 contributions/);
  play.seek(12);
  assert.deepEqual([nodeAppearance(graph, play, 0).state, nodeAppearance(graph, play, 0).sum], ["final", "Σ 3"]);
  assert.equal(nodeAppearance(graph, play, 3).placeholder, "blocked");
});

test("one contribution has no sum sign", () => {
  assert.deepEqual([formatSum(0, 1, false), formatSum(1, 2, false), formatSum(2, 2, true)], ["", "Σ 1 of 2", "Σ 2"]);
});

test("the label of the active edge is the product", () => {
  const graph = shared();
  const play = createPlayback(graph, createTimeline(graph));
  play.seek(6);
  assert.equal(productText(play.moment()), "1.0 × (−5.0) = −5.0");
});

test("the label of the active edge stays inside the scene", () => {
  const graph = shared();
  const drawn = sceneOf(graph);
  for (let edge = 0; edge < graph.edgeCount; edge += 1) {
    const [x, y] = labelPosition(drawn, graph, edge, 120);
    assert.ok(x >= 60 && x <= drawn.width - 60 && y > 0 && y < drawn.height);
  }
});

/** A random graph whose operations are created in consecutive scopes. @param {number} seed */
function scopedTrace(seed) {
  const random = randomFrom(seed);
  return scalarTrace((t) => {
    const made = [0, 1, 2, 3].map((k) => t.leaf(`x${k}`, 1 + random()));
    const near = () => made[made.length - 1 - Math.floor(random() * Math.min(made.length, 7))];
    for (let k = 0; k < 9; k += 1) {
      t.scope(`s${k}`, () => {
        for (let n = random() * 4; n > 0; n -= 1) made.push(random() < 0.5 ? t.mul(near(), near()) : t.add(near(), near()));
      });
    }
    return made[made.length - 1];
  });
}

test("the label of the active edge hides no other labels and no titles of open blocks", () => {
  for (let seed = 0; seed < 8; seed += 1) {
    const graph = decode(scopedTrace(seed));
    const drawn = sceneOf(graph);
    const words = [
      ...drawn.hulls.map(({ x, y, w }) => ({ x, y, w, h: 22 })),
      ...drawn.wires.flatMap(({ label }) => label ?? []),
    ];
    for (let edge = 0; edge < graph.edgeCount; edge += 1) {
      const [x, y] = labelPosition(drawn, graph, edge, 150);
      const own = drawn.wires[drawn.wireOf[edge]]?.label;
      const far = (/** @type {any} */ { w, h, ...one }) => [Math.abs(x - one.x - w / 2) - w / 2, Math.abs(y - one.y - h / 2) - h / 2];
      const hidden = words.filter((one) => one !== own && far(one)[0] < 74 && far(one)[1] < 9);
      assert.deepEqual(hidden, [], `the words on edge ${edge} of graph ${seed}`);
    }
  }
});

test("labels of arrows into one node do not overlap, and are in operand order", () => {
  for (let seed = 0; seed < 8; seed += 1) {
    const graph = decode(scopedTrace(seed));
    const drawn = scene(graph, visibleItems(graph, new Set([0])));
    const above = new Map();
    for (const { to, label } of drawn.wires) {
      if (!label) continue;
      assert.ok(label.y - (above.get(to) ?? -Infinity) > 13.4, `graph ${seed}, ${drawn.items[to].id}`);
      above.set(to, label.y);
    }
  }
});

test("progress counted step by step equals progress counted at once", () => {
  const graph = decode(randomTrace(randomFrom(3), 60));
  const play = createPlayback(graph, createTimeline(graph));
  const stepped = trackProgress(graph, play);
  stepped.count(allNodes(graph));
  for (const to of [...Array(play.timeline.length).keys(), 3, 40, 0, play.timeline.last, 17]) {
    stepped.count(play.seek(to).nodes);
    const fresh = trackProgress(graph, play);
    fresh.count(allNodes(graph));
    assert.deepEqual(stepped.done, fresh.done);
  }
});

test("block 0 contains every node", () => {
  const graph = decode(randomTrace(randomFrom(5), 50));
  assert.equal(blockContents(graph, alarmLevels(graph))[0].nodes, graph.count);
});

test("arrow keys follow edges and columns", () => {
  const graph = shared();
  const drawn = sceneOf(graph);
  const at = (/** @type {string} */ id) => drawn.items.findIndex((item) => item.id === id);
  const next = (/** @type {string} */ id, /** @type {string} */ key) =>
    neighbour(drawn, at(id), /** @type {[number, number]} */ (keyDirection(key)));
  assert.equal(next("n2", "ArrowLeft"), at("n0"));
  assert.equal(next("n6", "ArrowRight"), -1);
  assert.equal(next("n2", "ArrowRight"), at("n4"));
  assert.equal(next("n0", "ArrowDown"), at("n1"));
  assert.equal(next("n1", "ArrowUp"), at("n0"));
  assert.equal(keyDirection("constructor"), undefined);
});

/** @type {import("../src/drawing/curves.js").Point[]} */
const ROUTE = [
  [0, 0],
  [10, 0],
  [50, 40],
  [60, 40],
];

test("a curve goes through its route and ends inside the arrowhead", () => {
  assert.equal(curvePath(ROUTE), "M0 0H10C30 0 30 40 50 40H53");
  assert.deepEqual(samplePoints(ROUTE)[0], [0, 0]);
  assert.deepEqual(samplePoints(ROUTE).at(-1), [60, 40]);
  assert.deepEqual(midpointOf(ROUTE).map(Math.round), [30, 20]);
  assert.deepEqual(
    [5, 30, 60].map((x) => Math.round(yAt(ROUTE, x))),
    [0, 20, 40],
  );
});
