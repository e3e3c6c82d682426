import assert from "node:assert/strict";
import { test } from "node:test";
import { formatPretty } from "../src/base/notation.js";
import { fitNumber, fitText, textWidth } from "../src/base/measure.js";

test("widths are those of notation.py", () => {
  assert.equal(textWidth("ab", 10), 12.5);
  assert.equal(Math.round(textWidth("ab", 10, true) * 100), 1412);
});

test("text that fits is unchanged, other text is truncated with an ellipsis", () => {
  assert.equal(fitText("weight", 100, 12), "weight");
  const short = fitText("weight of the petal", 60, 12);
  assert.match(short, /^weig.*…$/);
  assert.ok(textWidth(short, 12) <= 60);
});

test("subscripts are kept", () => {
  assert.match(fitText("weight of the petal₁₂", 70, 12), /…₁₂$/);
});

test("a single letter is not truncated, because an ellipsis is wider", () => {
  assert.equal(fitText("v₁₄₂", 10, 12), "v₁₄₂");
});

test("surrogate pairs are not split", () => {
  assert.equal(fitText("🙂🙂🙂🙂", 40, 12), "🙂…");
});

test("a number loses digits until it fits", () => {
  assert.equal(fitNumber(1.23456, 200, 12, String), "1.23456");
  assert.equal(fitNumber(1.23456, 30, 12, String), "1.23");
});

test("a number loses its point before a digit, and only as many digits as needed", () => {
  const fitted = [-11, 121, 1089, 123456, 1.25, 12345.6, 1e9, -0.0000123].map((x) => fitNumber(x, 31.7, 11, formatPretty));
  assert.deepEqual(fitted, ["−11", "121", "1089", "123456", "1.25", "12346", "1e+09", "−1e−05"]);
});
