import assert from "node:assert/strict";
import { test } from "node:test";
import { pretty } from "../src/base/notation.js";
import { fitNumber, fitText, textWidth } from "../src/base/measure.js";

test("widths are those of notation.py", () => {
  assert.equal(textWidth("ab", 10), 12.5);
  assert.equal(Math.round(textWidth("ab", 10, true) * 100), 1412);
});

test("text that fits is not touched, other text ends in an ellipsis and fits", () => {
  assert.equal(fitText("weight", 100, 12), "weight");
  const short = fitText("weight of the petal", 60, 12);
  assert.match(short, /^weig.*…$/);
  assert.ok(textWidth(short, 12) <= 60);
});

test("figures below the line survive", () => {
  assert.match(fitText("weight of the petal₁₂", 70, 12), /…₁₂$/);
});

test("a letter is not cut, for an ellipsis is wider", () => {
  assert.equal(fitText("v₁₄₂", 10, 12), "v₁₄₂");
});

test("letters that are two units of UTF-16 are not cut", () => {
  assert.equal(fitText("🙂🙂🙂🙂", 40, 12), "🙂…");
});

test("a number loses digits until it fits", () => {
  assert.equal(fitNumber(1.23456, 200, 12, String), "1.23456");
  assert.equal(fitNumber(1.23456, 30, 12, String), "1.23");
});

test("a number gives up its point before a digit, and no digit in vain", () => {
  const fitted = [-11, 121, 1089, 123456, 1.25, 12345.6, 1e9, -0.0000123].map((x) => fitNumber(x, 31.7, 11, pretty));
  assert.deepEqual(fitted, ["−11", "121", "1089", "123456", "1.25", "12346", "1e+09", "−1e−05"]);
});
