import assert from "node:assert/strict";
import { test } from "node:test";
import { breakpoint, firingBreakpoints, nextStop, runToPosition } from "../src/model/breakpoints.js";
import { createPlayback, createTimeline } from "../src/model/history.js";
import { decode } from "../src/model/trace.js";
import { scalarTrace } from "./helpers.js";

/**
 * Positions: 1 and 2 in layer1/cell (mul, tanh h), 3 in layer2/cell (mul y); 4 the seed; 5 and 6 back through y,
 * 7 through h, 8 and 9 through v₂.
 */
const net = () =>
  played((t) => {
    const a = t.leaf("a", 3);
    const w = t.leaf("w₁", 20);
    const h = t.scope("layer1", () => t.scope("cell", () => t.tanh(t.mul(a, w), "h")));
    return t.scope("layer2", () => t.scope("cell", () => t.mul(h, a, "y")));
  });

/** @param {Parameters<typeof scalarTrace>[0]} build */
function played(build) {
  const graph = decode(scalarTrace(build));
  return createPlayback(graph, createTimeline(graph));
}

/** Parse a breakpoint. @param {string} text @returns {import("../src/base/types.js").BreakpointSpec} */
function spec(text) {
  if (text === "NaN or Inf") return { kind: "not-finite", value: null };
  if (text === "second contribution") return { kind: "second-contribution", value: null };
  if (text.startsWith("|grad| > ")) return { kind: "gradient-above", value: Number(text.slice(9)) };
  const [kind, ...words] = text.split(" ");
  return { kind: /** @type {"op"} */ (kind), value: words.join(" ") };
}

/** @param {import("../src/base/types.js").Playback} now @param {string[]} texts */
function stops(now, ...texts) {
  const specs = texts.map(spec);
  const ahead = [];
  for (now.seek(0); now.position < now.timeline.last; ahead.push(now.position)) now.seek(nextStop(now, specs, 1));
  const behind = [];
  for (; now.position > 0; behind.push(now.position)) now.seek(nextStop(now, specs, -1));
  const fired = ahead.filter((position) => firingBreakpoints(now, specs, position).length);
  assert.deepEqual(behind.slice(0, -1).reverse(), fired.filter((position) => position < now.timeline.last));
  return fired;
}

test("an op stops where it is computed and where its gradient starts to propagate", () => {
  assert.deepEqual(stops(net(), "op tanh"), [2, 7]);
  assert.deepEqual(stops(net(), "op mul"), [1, 3, 5, 8]);
  assert.deepEqual(stops(net(), "op Tanh"), [2, 7]);
  assert.deepEqual(stops(net(), "op relu"), []);
});

test("two consecutive ops of one kind stop twice", () => {
  assert.deepEqual(stops(played((t) => t.tanh(t.tanh(t.leaf("a", 1)))), "op tanh"), [1, 2, 4, 5]);
});

test("a name stops where it is computed and where its gradient receives a contribution", () => {
  assert.deepEqual(stops(net(), "name h"), [2, 5]);
  assert.deepEqual(stops(net(), "name a"), [6, 8]);
  assert.deepEqual(stops(net(), "name y"), [3, 4]);
  assert.deepEqual(stops(net(), "name w1"), [9]);
  assert.deepEqual(stops(net(), "name w₁"), [9]);
  assert.deepEqual(stops(net(), "name v2"), [1, 7]);
  assert.deepEqual(stops(net(), "name A"), []);
});

test("a scope stops where it is entered, forward and backward", () => {
  assert.deepEqual(stops(net(), "scope layer1"), [1, 7]);
  assert.deepEqual(stops(net(), "scope layer2"), [3, 4]);
  assert.deepEqual(stops(net(), "scope cell"), [1, 3, 4, 7]);
  assert.deepEqual(stops(net(), "scope layer1/cell"), [1, 7]);
  assert.deepEqual(stops(net(), "scope graph"), []);
});

test("a gradient stops where it exceeds a limit", () => {
  assert.deepEqual(stops(net(), "|grad| > 2"), [5]);
  assert.deepEqual(stops(net(), "|grad| > 0.5"), [4, 5, 6, 8]);
  assert.deepEqual(stops(net(), "|grad| > 3"), []);
  assert.deepEqual(stops(net(), "|grad| > 0"), [4, 5, 6, 8]);
  const negative = played((t) => t.mul(t.leaf("a", -7), t.leaf("b", Infinity)));
  assert.deepEqual(stops(negative, "|grad| > 8"), [3]);
  assert.deepEqual(stops(negative, "|grad| > 6"), [3, 4]);
});

test("a NaN or an infinity stops, forward and backward", () => {
  const bad = played((t) => t.mul(t.add(t.leaf("a", Infinity), t.leaf("b", -Infinity), "nan"), t.leaf("c", 2)));
  assert.deepEqual(stops(bad, "NaN or Inf"), [1, 2, 5]);
  assert.deepEqual(stops(net(), "NaN or Inf"), []);
});

test("a second contribution stops where it is added, a third does not", () => {
  assert.deepEqual(stops(net(), "second contribution"), [8]);
  const cube = played((t) => {
    const a = t.leaf("a", 2);
    return t.mul(t.mul(a, a), a);
  });
  assert.deepEqual(stops(cube, "second contribution"), [6]);
});

test("arrays stop by their largest magnitude and by non-finite elements", () => {
  const data = scalarTrace((t) => t.tanh(t.leaf("a", 1)));
  const rest = { dtype: "float32", size: 2, cells: [0, 0], rows: 1, cols: 2, mean: 0, std: 1 };
  data.arrays = [{ shape: [2], ...rest, min: -9, max: 3, hist: [], nan: 0, inf: 0 }];
  data.passes[0].total = [{ array: 0 }];
  const graph = decode(data);
  const now = createPlayback(graph, createTimeline(graph));
  assert.deepEqual(stops(now, "|grad| > 8"), [3]);
  assert.deepEqual(stops(now, "|grad| > 9"), []);
  assert.deepEqual(stops(now, "NaN or Inf"), []);
  graph.arrays[0].nan = 1;
  assert.deepEqual(stops(now, "NaN or Inf"), [3]);
  graph.arrays[0].inf = 1;
  assert.deepEqual(stops(now, "|grad| > 9"), [3]);
});

test("several breakpoints stop at each of their positions", () => {
  const now = net();
  assert.deepEqual(stops(now, "op tanh", "name a", "second contribution"), [2, 6, 7, 8]);
  const specs = ["op tanh", "name a", "second contribution"].map(spec);
  assert.deepEqual(firingBreakpoints(now, specs, 8).map((spec) => breakpoint(spec).text), ["name a", "second contribution"]);
});

test("the end is next if nothing fires", () => {
  const now = net();
  assert.equal(nextStop(now, [], 1), 9);
  assert.equal(nextStop(now, [], -1), 0);
  now.seek(9);
  assert.equal(nextStop(now, [spec("op mul")], 1), 9);
});

test("a breakpoint has a description", () => {
  const texts = ["op tanh", "name w[0]", "scope layer1/cell", "|grad| > 10", "|grad| > 0.5", "NaN or Inf"];
  for (const text of [...texts, "second contribution", "name two words"]) assert.equal(breakpoint(spec(text)).text, text);
});

test("an invalid breakpoint is rejected with advice", () => {
  const negative = "The limit must be a non-negative number, as in “|grad| > 10”.";
  assert.throws(() => breakpoint(spec("op")), { message: "Which op? Write, for example, “op tanh”." });
  assert.throws(() => breakpoint(spec("name  ")), { message: "Which name? Write, for example, “name w0”." });
  assert.throws(() => breakpoint(spec("scope ")), { message: "Which scope? Write, for example, “scope attention”." });
  assert.throws(() => breakpoint(spec("|grad| > -1")), { message: negative });
  assert.throws(() => breakpoint(spec("|grad| > nan")), { message: negative });
  assert.throws(() => breakpoint(spec("moon")), { message: "Unknown kind of breakpoint: “moon”." });
});

test("run to a node: to its value, then to its gradient, then back to it", () => {
  const now = net();
  assert.equal(runToPosition(now, 3), 2);
  now.seek(2);
  assert.equal(runToPosition(now, 3), 5);
  now.seek(9);
  assert.equal(runToPosition(now, 3), 5);
  now.seek(0);
  assert.equal(runToPosition(now, 0), 8, "a leaf has its value from the start");
  assert.equal(runToPosition(now, 4), 3);
  now.seek(3);
  assert.equal(runToPosition(now, 4), 4, "the gradient of the root is its seed");
  const constant = played((t) => t.add(t.leaf("a", 1), t.constant(2)));
  assert.equal(runToPosition(constant, 1), 0, "no gradient ever comes here");
});
