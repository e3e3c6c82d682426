/** Formatting of numbers and formulas. tests/viz/trace/test_templates.py compares thousands of them with Python. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { formulaMathML, formulaText, formatNumber, formatPretty, shortenName, subscript } from "../src/base/notation.js";

test("numbers have six digits, ties round to even", () => {
  const written = [2, 0.1 + 0.2, -0, 1e-7, 123456789, -Infinity, null, NaN, 100000.5, 100001.5, 999999.5].map(formatNumber);
  assert.deepEqual(written, [
    ...["2.0", "0.3", "0.0", "1e-07", "1.23457e+08", "-inf", "—", "nan", "100000.0", "100002.0", "1e+06"],
  ]);
  assert.deepEqual([-3, Infinity, NaN, -1e-7].map(formatPretty), ["−3.0", "∞", "NaN", "−1e−07"]);
});

test("names are truncated, subscripts kept", () => {
  assert.equal(shortenName("weight of the petal₁₂", 10), "weight …₁₂");
  assert.equal(subscript(12), "₁₂");
});

test("parts of a formula get parentheses where needed", () => {
  const product = { text: "\ue00b · \ue013", mathml: "<mrow>\ue00b<mo>·</mo>\ue013</mrow>" };
  assert.equal(formulaText(product, ["y", "a", -3]), "a · (−3)");
  assert.equal(formulaText(product, ["y", "a + b", 1e-7]), "(a + b) · 1e−07");
  assert.match(formulaMathML(product, ["y", "a", 2]), /<mrow><mi>a<\/mi><mo>·<\/mo><mn>2<\/mn><\/mrow><\/math>$/);
});

test("names are escaped in MathML", () => {
  const name = { text: "\ue008", mathml: "\ue008" };
  assert.ok(!formulaMathML(name, ["y", "<script>&'\"\uf8f0\ue000"]).includes("<script"));
  assert.equal(formulaText(name, ["y", "\uf8f1\ue000"]), "\uf8f1\ue000");
});

test("integer exponents are superscripts, factors are separated from digits", () => {
  const power = { text: "\ue00d\uf8f1\ue015\uf8f2", mathml: "" };
  assert.equal(formulaText(power, ["y", "x", 2]), "x²");
  assert.equal(formulaText(power, ["y", "x", -2]), "x⁻²");
  assert.equal(formulaText(power, ["y", -1, "n + 1"]), "(−1)^(n + 1)");
  const factors = { text: "2 \uf8f0 \ue00c", mathml: "" };
  assert.equal(formulaText(factors, ["y", "x"]), "2 x");
  assert.equal(formulaText(factors, ["y", 3]), "2 · 3");
});
