/**
 * What-if: values from changed leaves, nodes that cannot be recomputed, and the tangent.
 * tests/viz/frontend/test_engine.py compares the values with Python.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine } from "../src/engine/engine.js";
import { parseExpression } from "../src/engine/expression.js";
import { decode } from "../src/model/trace.js";
import { scalarTrace } from "./helpers.js";

/** y = a·b + a, where leaf a is used twice. */
const twice = () =>
  scalarTrace((t) => {
    const [a, b] = [t.leaf("a", 2), t.leaf("b", -3)];
    return t.add(t.mul(a, b), a, "y");
  });

/** The same, with an op that cannot be recomputed in place of the product. */
function opaque() {
  const trace = twice();
  const mul = trace.ops.find((op) => op.name === "mul");
  Object.assign(mul, { js: null, rules: [null, null], why: "mul is not defined on scalars." });
  return trace;
}

test("values follow a changed leaf", () => {
  const graph = decode(twice());
  const { run, canRecompute, why } = createEngine(graph);
  const numbers = run(new Map([[0, 5]]));
  assert.deepEqual(numbers.value, [5, -3, -15, -10]);
  assert.deepEqual([0, 1, 2, 3].map(numbers.local), [-3, 5, 1, 1]);
  const [pass] = numbers.runs;
  const events = [...pass.edge].map((edge, k) => [graph.operand[edge], pass.contribution[k], pass.total[k]]);
  assert.deepEqual(events, [[2, 1, 1], [0, 1, 1], [0, -3, -2], [1, 5, 5]]);
  assert.ok([0, 1, 2, 3].every((node) => canRecompute(node) && why(node) === null));
});

test("a run does not modify the recorded values, and the next one starts from them", () => {
  const graph = decode(twice());
  const { run } = createEngine(graph);
  const { value, runs } = structuredClone({ ...graph.numbers, local: null });
  run(new Map([[0, 5]]));
  assert.deepEqual([graph.numbers.value, graph.numbers.runs], [value, runs]);
  assert.deepEqual(run(new Map()).value, value);
});

test("an opaque operation has no value once its operand changes, and says why", () => {
  const graph = decode(opaque());
  const { run, canRecompute, why } = createEngine(graph);
  const numbers = run(new Map([[1, 7]]));
  assert.deepEqual(numbers.value, [2, 7, null, null]);
  assert.deepEqual([canRecompute(0), canRecompute(2), canRecompute(3)], [true, false, false]);
  assert.equal(why(2), "mul is not defined on scalars.");
  assert.equal(why(3), `It depends on v₂, which cannot be recomputed. ${why(2)}`);
});

test("an opaque operation keeps its value and derivatives while its inputs do not change", () => {
  const trace = scalarTrace((t) => {
    const [a, b, c] = [t.leaf("a", 2), t.leaf("b", -3), t.leaf("c", 1)];
    return t.add(t.mul(a, b), t.tanh(c), "y");
  });
  const mul = trace.ops.find((op) => op.name === "mul");
  Object.assign(mul, { js: null, rules: [null, null], why: "No." });
  const graph = decode(trace);
  const numbers = createEngine(graph).run(new Map([[2, 0]]));
  const root = graph.outputs[0];
  assert.equal(numbers.value[root], -6);
  const [{ edge, total }] = numbers.runs;
  const sums = new Map([...edge].map((over, k) => [graph.operand[over], total[k]]));
  assert.deepEqual([0, 1, 2].map((leaf) => sums.get(leaf)), [-3, 2, 1]);
});

test("a formula that does not reproduce Python's value is not trusted; rounding is tolerated", () => {
  const wrong = twice();
  wrong.ops.find((op) => op.name === "mul").js = "(a / b)";
  assert.equal(createEngine(decode(wrong)).why(2), "Its formula gives -0.666667 here, but Python computed -6.0.".replaceAll("-", "−"));
  const rounded = scalarTrace((t) => t.add(t.leaf("a", 1.23457), t.leaf("b", -1.23456)));
  rounded.nodes.value[2] = 1.3e-5; // of values that were rounded to six digits
  assert.equal(createEngine(decode(rounded)).why(2), null);
});

test("invalid expressions are rejected, and only leaves can be changed", () => {
  for (const text of ["a +", "alert(1)", "Math.random()", "a.b", "a = 1", "`a`", "(a", "constructor(a)", "Math.constructor", "", "(a + b * a)",
    "erf(a + b)", "()"]) {
    assert.throws(() => parseExpression(text, String, String), /Cannot parse/, text);
  }
  const hostile = twice();
  hostile.ops[0].js = "globalThis.stolen = 1";
  assert.match(createEngine(decode(hostile)).why(3), /Cannot parse/);
  assert.equal(globalThis.stolen, undefined);
  assert.throws(() => createEngine(decode(twice())).run(new Map([[3, 1]])), RangeError);
});

test("the tangent has the derivative of the chain rule, which central differences confirm", () => {
  const graph = decode(scalarTrace((t) => {
    const a = t.leaf("a", 0.7);
    return t.tanh(t.mul(a, t.add(a, t.constant(1))));
  }));
  const { tangent } = createEngine(graph);
  for (const x of [0.7, -0.4, 1.5]) {
    const found = tangent(0, graph.outputs[0], new Map([[0, x]]));
    const y = Math.tanh(x * (x + 1));
    assert.ok(Math.abs(found.y - y) < 1e-15 && found.x === x);
    assert.ok(Math.abs(found.slope - (1 - y * y) * (2 * x + 1)) < 1e-14);
    assert.ok(Math.abs(found.measured - found.slope) < 1e-9);
  }
});

/** Build a sum of two scalars as a tensor's program, modified by `spoil`; return why it cannot be recomputed. */
function programmed(spoil) {
  const trace = scalarTrace((t) => t.add(t.leaf("a", 2), t.leaf("b", 3), "y"));
  const loop = { f: "(a + b)", n: [1], o: [4, 0, 1], x: [[2, 0, 1], [3, 0, 1]], by: null };
  const program = { first: 4, sizes: [1], result: 4, loops: [loop] };
  spoil(program, loop);
  trace.programs = [program];
  trace.nodes.tensor = { 2: { shape: [1], dtype: "float32", loops: [0, null, null] } };
  return createEngine(decode(trace));
}

test("a program that reads a missing array, or is too long, is not run", () => {
  assert.equal(programmed(() => {}).why(2), null);
  const refused = [
    (program) => delete program.sizes,
    (program) => (program.sizes = [1e9]),
    (program) => (program.loops = [null]),
    (_, loop) => (loop.n = [1e5, 1e5]),
    (_, loop) => (loop.n = [1e300, 0]),
    (_, loop) => (loop.n = "1"),
    (_, loop) => (loop.x = 1),
    (_, loop) => (loop.f = "globalThis.ran = 1"),
    (_, loop) => (loop.by = "max(a, o); globalThis.ran = 1; ("),
  ];
  for (const spoil of refused) {
    const { why } = programmed(spoil);
    assert.equal(why(2), "The trace has no formula for it.", String(spoil));
  }
  const unknown = [
    (program) => (program.result = 5),
    (program) => (program.loops = []),
    (_, loop) => (loop.x = [[9, 0, 1], [3, 0, 1]]),
  ];
  for (const spoil of unknown) assert.equal(programmed(spoil).run(new Map([[0, 5]])).value[2], null, String(spoil));
  assert.equal(globalThis.ran, undefined);
});
