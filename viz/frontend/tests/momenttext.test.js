/** Text about a moment. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { createSession, moveTo } from "../src/panels/session.js";
import { decode } from "../src/model/trace.js";
import { chainRule, formatGradient, formulaNumbers, formatQuantity } from "../src/panels/momenttext.js";
import { scalarTrace } from "./helpers.js";

/** y = a * b + a with a = 2, b = −3: a is used twice. */
function session() {
  const data = scalarTrace((t) => {
    const a = t.leaf("a", 2);
    return t.add(t.mul(a, t.leaf("b", -3), "c"), a, "y");
  });
  return createSession(decode(data));
}

/**
 * @param {import("../src/panels/session.js").Session} s
 * @param {string} edgeFrom @param {string} edgeTo
 */
function at(s, edgeFrom, edgeTo) {
  for (let p = s.timeline.seed + 1; p <= s.timeline.last; p += 1) {
    const edge = s.timeline.edgeAt(p);
    if (s.graph.title(s.graph.result[edge]) === edgeFrom && s.graph.title(s.graph.operand[edge]) === edgeTo) return p;
  }
  throw new Error("no such event");
}

test("the chain rule has symbols and numbers, negative ones in parentheses", () => {
  const s = session();
  moveTo(s, at(s, "c", "a"));
  const rule = chainRule(s, s.playback.moment());
  assert.equal(rule.symbols, "∂y/∂a += ∂y/∂c · ∂c/∂a");
  assert.equal(rule.numbers, "1.0 × (−3.0) = −3.0");
  assert.equal(rule.sum, "a.grad: 1.0 + (−3.0) → −2.0");
});

test("the chain rule of a single contribution has no sum", () => {
  const s = session();
  moveTo(s, at(s, "c", "b"));
  const rule = chainRule(s, s.playback.moment());
  assert.equal(rule.symbols, "∂y/∂b = ∂y/∂c · ∂c/∂b");
  assert.equal(rule.sum, "");
});

test("the first of several contributions is added to 0", () => {
  const s = session();
  moveTo(s, at(s, "y", "a"));
  assert.equal(chainRule(s, s.playback.moment()).sum, "a.grad: 0 + 1.0 → 1.0");
});

test("a gradient shows how many contributions have arrived", () => {
  const s = session();
  assert.equal(formatGradient(s.playback.gradient(0)), "—");
  moveTo(s, at(s, "y", "a"));
  assert.equal(formatGradient(s.playback.gradient(0)), "1.0 (Σ 1 of 2)");
  moveTo(s, s.timeline.last);
  assert.equal(formatGradient(s.playback.gradient(0)), "−2.0");
});

test("an array is formatted in one line, with its NaN", () => {
  const cells = { shape: [2], size: 2, cells: [1, NaN], min: 1, max: 1, nan: 1, inf: 0 };
  assert.equal(formatQuantity(cells), "(2,) from 1.0 to 1.0 NaN!");
  assert.equal(formatQuantity({ ...cells, shape: [], size: 1, cells: [4] }), "4.0");
  assert.equal(formatQuantity(null), "—");
});

test("the numbers of a formula are those of the result and its operands, once known", () => {
  const s = session();
  assert.deepEqual(formulaNumbers(s, 2), [-6, 2, -3]);
  moveTo(s, 0);
  assert.equal(formulaNumbers(s, 2), null);
});
