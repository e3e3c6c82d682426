import assert from "node:assert/strict";
import { test } from "node:test";
import { createPlayback, createTimeline } from "../src/model/history.js";
import { diagnose, parseNumber, questionAt, matchesDigits } from "../src/model/predict.js";
import { decode } from "../src/model/trace.js";
import { randomTrace, scalarTrace } from "./helpers.js";

/** @param {Parameters<typeof scalarTrace>[0]} build @param {number} position */
function played(build, position) {
  const graph = decode(scalarTrace(build));
  const now = createPlayback(graph, createTimeline(graph));
  now.seek(position);
  return now;
}

/** y = c · d, c = a · b: next, c propagates −5 (from y) times b = −3 to a, as its first contribution. */
const product = () =>
  played((t) => t.mul(t.mul(t.leaf("a", 2), t.leaf("b", -3), "c"), t.leaf("d", -5), "y"), 5);

/** y = (a · b) · a, before a gets its first contribution, a · b. */
const square = (a = 4, b = -3) =>
  played((t) => {
    const x = t.leaf("a", a);
    return t.mul(t.mul(x, t.leaf("b", b), "c"), x, "y");
  }, 4);

/**
 * @param {import("../src/base/types.js").Playback} now
 * @param {[number, string, string][]} cases answer, verdict, text
 */
function expect(now, cases) {
  for (const [answer, verdict, text] of cases) {
    assert.deepEqual(diagnose(answer, now), { verdict, text }, `the answer ${answer}`);
  }
}

test("a product: each mistake has its verdict and message", () => {
  const factors = "the gradient of c, −5.0, times ∂c/∂a = −3.0";
  expect(product(), [
    [15, "right", "Right: −5.0 × (−3.0) = 15.0."],
    [15.04, "right", "Right: −5.0 × (−3.0) = 15.0."],
    [-15, "sign", `Right magnitude, wrong sign. It is ${factors}, and both are negative.`],
    [-5, "factor", "−5.0 is only the gradient of c. Multiply it by the local derivative, ∂c/∂a = −3.0."],
    [-3, "factor", "−3.0 is only the local derivative ∂c/∂a. Multiply it by the upstream gradient, that of c: −5.0."],
    [15.5, "wrong", "Close: give three correct digits."],
    [0, "wrong", "Not yet. Multiply the gradient of c, −5.0, by the local derivative ∂c/∂a = −3.0."],
    [NaN, "wrong", "Not yet. Multiply the gradient of c, −5.0, by the local derivative ∂c/∂a = −3.0."],
  ]);
});

test("nothing is added to the first of two contributions", () => {
  assert.deepEqual(diagnose(-12, square(4, -3)), { verdict: "right", text: "Right: 1.0 × (−12.0) = −12.0." });
});

/** y = (a · b + d) · a: the final gradient of a is 7 + 5 · 2, with a = 5, b = 2, d = −3. */
const sum = () => {
  const now = played((t) => {
    const a = t.leaf("a", 5);
    return t.mul(t.add(t.mul(a, t.leaf("b", 2), "c"), t.leaf("d", -3), "e"), a, "y");
  }, 8);
  const { upstream, local, before, total } = now.moment(9);
  assert.deepEqual([upstream, local, before, total], [5, 2, 7, 17]);
  return now;
};

test("a sum: each mistake has its verdict and message", () => {
  const factors = "the gradient of c, 5.0, times ∂c/∂a = 2.0";
  const withLocal = factors.replace("times", "by the local derivative");
  const sign = `Right magnitude, wrong sign. It is ${factors}, and neither is negative.`;
  const upstream = "5.0 is only the gradient of c. Multiply it by the local derivative, ∂c/∂a = 2.0.";
  const local = "2.0 is only the local derivative ∂c/∂a. Multiply it by the upstream gradient, that of c: 5.0.";
  const both = "Right magnitude, wrong sign: a already has 7.0, and the contribution has a sign too.";
  expect(sum(), [
    [17, "right", "Right: 5.0 × 2.0 = 10.0, and 7.0 + 10.0 = 17.0."],
    [10, "accumulation", "10.0 is this step's contribution. a already has 7.0: add the two."],
    [-3, "sign", `Check the contribution. ${sign}`],
    [7, "accumulation", "a already has 7.0. Add this step's contribution."],
    [12, "factor", `Check the contribution. ${upstream}`],
    [9, "factor", `Check the contribution. ${local}`],
    [-17, "sign", both],
    [-10, "sign", `${sign} And a already has 7.0: add the two.`],
    [5, "factor", `${upstream} And a already has 7.0: add the two.`],
    [2, "factor", `${local} And a already has 7.0: add the two.`],
    [17.3, "wrong", "Close: give three correct digits."],
    [100, "wrong", `Not yet. Multiply ${withLocal}, and add what a already has: 7.0.`],
  ]);
});

test("a missing factor on the path is named", () => {
  const now = played((t) => {
    const c = t.mul(t.leaf("a", 3), t.leaf("p", 7), "c");
    const d = t.mul(c, t.leaf("q", 11), "d");
    return t.mul(d, t.leaf("r", 13), "y");
  }, 8);
  expect(now, [
    [1001, "right", "Right: 143.0 × 7.0 = 1001.0."],
    [143, "factor", "143.0 is only the gradient of c. Multiply it by the local derivative, ∂c/∂a = 7.0."],
    [7, "factor", "7.0 is only the local derivative ∂c/∂a. Multiply it by the upstream gradient, that of c: 143.0."],
    [91, "factor", "A factor is missing: ∂d/∂c = 11.0 is on the path."],
    [77, "factor", "A factor is missing: ∂y/∂d = 13.0 is on the path."],
  ]);
});

test("a mistake that coincides with the right answer is right", () => {
  const factors = "the gradient of y, 1.0, times ∂y/∂a = 1.0";
  const plus = played((t) => t.add(t.leaf("a", 2), t.leaf("b", -3), "y"), 2);
  expect(plus, [
    [1, "right", "Right: 1.0 × 1.0 = 1.0."],
    [-1, "sign", `Right magnitude, wrong sign. It is ${factors}, and neither is negative.`],
  ]);
  const zero = played((t) => t.mul(t.leaf("a", 2), t.leaf("b", 0), "y"), 2);
  expect(zero, [
    [0, "right", "Right: 1.0 × 0.0 = 0.0."],
    [1, "factor", "1.0 is only the gradient of y. Multiply it by the local derivative, ∂y/∂a = 0.0."],
  ]);
});

test("with a local derivative of 1 the contribution alone is a missing sum, not a missing factor", () => {
  const twice = played((t) => {
    const a = t.leaf("a", 2);
    return t.add(t.add(a, t.leaf("b", 1), "c"), a, "y");
  }, 5);
  const factors = "the gradient of c, 1.0, times ∂c/∂a = 1.0";
  const sign = `Right magnitude, wrong sign. It is ${factors}, and neither is negative.`;
  expect(twice, [
    [2, "right", "Right: 1.0 × 1.0 = 1.0, and 1.0 + 1.0 = 2.0."],
    [1, "accumulation", "1.0 is this step's contribution. a already has 1.0: add the two."],
    [0, "sign", `Check the contribution. ${sign}`],
  ]);
});

test("how many factors are negative is counted by their signs, not their sizes", () => {
  const half = played((t) => t.mul(t.mul(t.leaf("a", 1), t.leaf("b", 0.5), "c"), t.leaf("d", 0.25), "y"), 5);
  const factors = "the gradient of c, 0.25, times ∂c/∂a = 0.5";
  const sign = `Right magnitude, wrong sign. It is ${factors}, and neither is negative.`;
  expect(half, [[-0.125, "sign", sign]]);
});

test("a factor of 0 on the path is not divided by", () => {
  const none = played((t) => t.mul(t.mul(t.leaf("a", 1), t.leaf("b", 3), "c"), t.leaf("d", 0), "y"), 5);
  assert.equal(diagnose(0, none).verdict, "right");
  assert.equal(diagnose(NaN, none).verdict, "wrong");
});

test("with a local derivative of −1 the upstream gradient alone has the wrong sign", () => {
  const minus = played((t) => t.mul(t.leaf("a", 4), t.leaf("b", -1), "y"), 2);
  assert.equal(diagnose(1, minus).verdict, "sign");
});

test("a sum that cancels is 0, up to rounding", () => {
  const now = square(0.1, 0.1);
  now.seek(5);
  const k = questionAt(now) - now.timeline.seed - 1;
  assert.notEqual(now.moment(questionAt(now)).before, null);
  const total = now.graph.numbers.runs[0].total.slice();
  total[k] = 1e-18;
  now.numbers = { ...now.graph.numbers, runs: [{ ...now.graph.numbers.runs[0], total }] };
  assert.equal(diagnose(0, now).verdict, "right");
});

test("non-finite values can be predicted", () => {
  const now = played((t) => t.mul(t.leaf("a", 2), t.leaf("b", -Infinity), "y"), 2);
  assert.deepEqual(diagnose(-Infinity, now), { verdict: "right", text: "Right: 1.0 × (−∞) = −∞." });
  assert.equal(diagnose(Infinity, now).verdict, "sign");
  assert.equal(diagnose(1, now).verdict, "factor");
  const nan = played((t) => t.mul(t.leaf("a", 2), t.leaf("b", NaN), "y"), 2);
  assert.deepEqual(diagnose(NaN, nan), { verdict: "right", text: "Right: 1.0 × NaN = NaN." });
});

test("the forward pass leads to the first backward step; after the last there is no question", () => {
  const now = product();
  now.seek(0);
  assert.equal(questionAt(now), 4);
  assert.equal(diagnose(-5, now).verdict, "right");
  now.seek(3);
  assert.equal(questionAt(now), 4);
  now.seek(now.timeline.last);
  assert.equal(questionAt(now), -1);
  const message = "Nothing to predict: no backward step follows, or its gradient is an array.";
  assert.throws(() => diagnose(1, now), { message });
  const forward = decode({ ...scalarTrace((t) => t.tanh(t.leaf("a", 1))), passes: [] });
  assert.equal(questionAt(createPlayback(forward, createTimeline(forward))), -1);
});

test("there are no questions about arrays and unknown values", () => {
  const data = scalarTrace((t) => t.tanh(t.leaf("a", 1)));
  data.edges.local = [null];
  const graph = decode(data);
  assert.equal(questionAt(createPlayback(graph, createTimeline(graph))), -1);
});

test("in random graphs the true value is right, and no mistake is", () => {
  for (let seed = 0; seed < 500; seed += 1) {
    const graph = decode(randomTrace(seed));
    const now = createPlayback(graph, createTimeline(graph));
    for (let p = now.timeline.seed; p >= 0 && p < now.timeline.last; p += 1) {
      now.seek(p);
      const { contribution, total, before } = now.moment(p + 1);
      assert.equal(diagnose(Number(total), now).verdict, "right");
      assert.equal(diagnose(Number(Number(total).toPrecision(3)), now).verdict, "right");
      if (before === null || matchesDigits(Number(contribution), Number(total), Math.abs(Number(before)))) continue;
      assert.equal(diagnose(Number(contribution), now).verdict, "accumulation");
    }
  }
});

test("three digits are enough", () => {
  const pairs = [[0.42, 0.419974], [0.333, 1 / 3], [1.995, 2], [10, 9.996], [-1.23e-7, -1.2345e-7], [0, 0]];
  for (const [answer, number] of pairs) assert.equal(matchesDigits(answer, number), true, `${answer} for ${number}`);
  for (const [answer, number] of [[0.33, 1 / 3], [2.01, 2], [0.001, 0], [0, 0.001], [Infinity, 1], [1, NaN]]) {
    assert.equal(matchesDigits(answer, number), false, `${answer} for ${number}`);
  }
});

test("numbers are parsed as people write them", () => {
  const pairs = /** @type {[string, number][]} */ ([
    ["−3", -3],
    ["-3", -3],
    [" +3 ", 3],
    ["1/3", 1 / 3],
    ["-1 / 4", -0.25],
    ["−1/−4", 0.25],
    ["2e-3", 0.002],
    ["2E−3", 0.002],
    ["−2e−3", -0.002],
    [".5", 0.5],
    ["5.", 5],
    ["inf", Infinity],
    ["−∞", -Infinity],
    ["-Infinity", -Infinity],
    ["nan", NaN],
  ]);
  for (const [text, number] of pairs) assert.equal(parseNumber(text), number, text);
});

test("an invalid number is rejected with advice", () => {
  const how = "enter a number such as −3, 0.25, 1/3 or 2e-3.";
  for (const [text, message] of [
    ["", `The field is empty: ${how}`],
    ["  ", `The field is empty: ${how}`],
    ["three", `“three” is not a number: ${how}`],
    ["0x10", `“0x10” is not a number: ${how}`],
    ["1e", `“1e” is not a number: ${how}`],
    ["1/2/3", `“1/2/3” is not a number: ${how}`],
    ["1/", `“1/” is not a number: ${how}`],
    ["−−3", `“−−3” is not a number: ${how}`],
    ["a very long answer indeed", `“a very long answer …” is not a number: ${how}`],
    ["1/0", `“1/0” divides by 0: ${how}`],
    ["0,5", "Use a decimal point: 0.5."],
  ]) {
    assert.throws(() => parseNumber(text), { message }, text);
  }
});
