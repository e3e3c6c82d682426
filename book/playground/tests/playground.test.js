import assert from "node:assert/strict";
import { test } from "node:test";

import { caretAt } from "../caret.js";
import { createLink, parseLink } from "../link.js";
import { initialValues, sliderBound } from "../leaves.js";
import { createCatalogue, distance, fillPlaceholders } from "../catalogue.js";
import { parse } from "../parser.js";
import { buildTape } from "../tape.js";
import { Mistake, tokenize } from "../tokens.js";

/** A catalogue of a few operations, independent of the real ones. */
const one = (inputs, js, domain = [-3, 3], attrs = []) => ({
  record: { name: "", formula: "", js, rules: Array(inputs).fill("g"), why: null },
  inputs,
  attrs,
  defaults: Object.fromEntries(attrs.map((name) => [name, null])),
  domain: Array(inputs).fill(domain),
  flows: Array(inputs).fill(true),
  forms: {},
  constants: [],
});
const ops = {
  add: one(2, "(a + b)"),
  sub: one(2, "(a - b)"),
  mul: one(2, "(a * b)"),
  div: one(2, "(a / b)"),
  pow: one(2, "pow(a, b)"),
  neg: one(1, "(-a)"),
  tanh: one(1, "Math.tanh(a)"),
  log: one(1, "Math.log(a)", [0.25, 3]),
  clamp: one(1, "clamp(a, min, max)", [-3, 3], ["min", "max"]),
};
const operators = { "+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", neg: "neg" };
const catalogue = createCatalogue({ ops, operators, functions: Object.fromEntries(Object.keys(ops).map((name) => [name, name])) });

/** Return an expression in prefix form, as parsed. */
function understood(text) {
  const { steps, lines } = parse(text, catalogue);
  const shown = (at) => {
    const step = steps[at];
    if (step.kind !== "op") return String(step.kind === "name" ? step.name : step.value);
    return `${step.op}(${step.operands.map(shown).join(" ")})`;
  };
  return lines.map(({ name, last }) => (name ? `${name} = ` : "") + shown(last)).join("; ");
}

test("operators bind as in Python", () => {
  const found = {
    "a + b*c": "add(a mul(b c))",
    "a - b - c": "sub(sub(a b) c)",
    "a/b*c": "mul(div(a b) c)",
    "a**b**c": "pow(a pow(b c))",
    "-a**2": "neg(pow(a 2))",
    "a**-b": "pow(a neg(b))",
    "2*-a": "mul(2 neg(a))",
    "--a": "neg(neg(a))",
    "+a": "a",
    "(a + b)*c": "mul(add(a b) c)",
    "a − b": "sub(a b)",
    "tanh(a)**2": "pow(tanh(a) 2)",
    "h = a*2; h*h": "h = mul(a 2); mul(h h)",
    "\n\nh = (a +\n b) # sum\n\nh\n": "h = add(a b); h",
  };
  for (const [text, expected] of Object.entries(found)) assert.equal(understood(text), expected, text);
});

test("names are normalised as in Python", () => {
  assert.deepEqual(tokenize("ℌ_1+α").slice(0, 3).map(({ text }) => text), ["H_1", "+", "α"]);
});

/** Return the message of a mistake and the source it points at. */
function wrong(text) {
  try {
    buildTape(parse(text, catalogue), catalogue);
  } catch (error) {
    return [error.message.split(".")[0], text.slice(error.from, error.to)];
  }
  return assert.fail(`nothing is wrong with ${text}`);
}

test("a mistake has a message and points at the source", () => {
  const found = {
    "(a + b": ["This bracket is not closed", "("],
    "tanh(a": ["This bracket is not closed", "("],
    "(a\nb": ["This bracket is not closed", "("],
    "a)": ["Unmatched closing bracket", ")"],
    "a +": ["A number or a name is missing after “+”", "+"],
    "a * * b": ["A number or a name is missing after “*”", "*"],
    "* b": ["A number or a name is missing before “*”", "*"],
    "h =": ["A number or a name is missing after this", "="],
    "()": ["These brackets are empty", "()"],
    "a b": ["An operator is missing before this", "b"],
    "2(a)": ["An operator is missing before this", "("],
    "2a": ["Write 2*a for a product", "a"],
    "1.2.3*a": ["“1", "1.2.3"],
    "a ^ 2": ["“^” is not a power", "^"],
    "a × b": ["Write * for a product", "×"],
    "a² + 1": ["Write ** for a power, as in a**2", "²"],
    "w₁ + 1": ["Write subscripts with _, as in w_1", "₁"],
    "a // b": ["“//” is not supported", "//"],
    "a % b": ["“%” is not supported", "%"],
    "a == b": ["Comparisons are not supported", "=="],
    "a += b": ["Augmented assignment is not supported", "+="],
    "a.tanh()": ["Methods are not supported", "."],
    "a $ b": ["Unexpected character “$”", "$"],
    "a 😀 b": ["Unexpected character “😀”", "😀"],
    "a + b = c": ["Only a name may come before =, as in h = a*b", "="],
    "h = k = a": ["A line may have only one =, as in h = a*b", "="],
    "tanh(h = a)": ["tanh has no argument “h”", "h"],
    "a, b": ["A comma is only allowed between the arguments of a function", ","],
    "tahn(a)": ["Unknown function “tahn”", "tahn"],
    "ln(a)": ["Unknown function “ln”", "ln"],
    "f(a)": ["Unknown function “f”", "f"],
    "tanh(a, b)": ["tanh takes 1 argument, but there are 2", "tanh(a, b)"],
    "pow(a)": ["pow takes 2 arguments, but there is 1", "pow(a)"],
    "tanh()": ["tanh takes 1 argument, but there are none", "tanh()"],
    "clamp(a, 1, min=2)": ["clamp got min twice", "min"],
    "clamp(a, max=1, max=2)": ["clamp got max twice", "max"],
    "clamp(a, max=1, 2)": ["A positional argument follows a keyword argument", "2"],
    "clamp(min=1, a)": ["A positional argument follows a keyword argument", "a"],
    "1__0*a": ["Write 1*__0 for a product", "__0"],
    "clamp(a, b)": ["min of clamp must be a constant: it gets no gradient", "b"],
    tanh: ["“tanh” is a function: write tanh(a)", "tanh"],
    "tanh = a": ["“tanh” is the name of a function", "tanh"],
    "pi = a": ["“pi” is a constant", "pi"],
    "lambda*2": ["“lambda” is a Python keyword", "lambda"],
    "2*3": ["The last line has no names, so there is no leaf to change, and no gradient", "2*3"],
    "": ["The expression is empty", ""],
    " \n# a remark": ["The expression is empty", ""],
  };
  for (const [text, expected] of Object.entries(found)) assert.deepEqual(wrong(text), expected, text);
});

test("long and deeply nested input is rejected quickly", () => {
  assert.match(wrong("a+".repeat(600) + "a")[0], /at most 500 operations/);
  assert.match(wrong("a".repeat(30_000))[0], /too long/);
  for (const deep of ["(".repeat(9000), "-".repeat(9000), "tanh(".repeat(3000), "a**".repeat(6000)]) {
    assert.match(wrong(`${deep}a`)[0], /nested/);
  }
});

/** Mulberry32, a seeded random generator by Tommy Ettinger. @param {number} seed */
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WRITTEN = ["(a+b)*c + tanh(d)", "h = a*b\nh*h - h", "clamp(a, min=-1, max=.5e1)**2", "-2**-x/(1_0 - log(y))"];
const PIECES = [..."ab_α漢0.159+-*/(),=;\n\t\\#'<>&[]{}^%$😀²₁−", "**", "//", "e5", "1e999", "pi", "max=", "tanh", "log(", "f("];
PIECES.push("lambda", "__proto__", "constructor", "<img src=x onerror=x>", "\r\n", "\u2028", "\ud800", "\0", "\u202e", "ﬁ", "é", "٣");

test("random input yields a graph, or a mistake with a message and a valid span", () => {
  const next = random(1);
  const one = (all) => all[Math.floor(next() * all.length)];
  const found = { graphs: 0, mistakes: 0 };
  for (let k = 0; k < 3000; k += 1) {
    const letters = [...one(WRITTEN)];
    for (let change = 0; change < 1 + (k % 5); change += 1) letters.splice(next() * letters.length, next() * 3, one(PIECES));
    const text = k % 3 ? letters.join("") : Array.from({ length: next() * 12 }, () => one(PIECES)).join("");
    try {
      buildTape(parse(text, catalogue), catalogue);
      found.graphs += 1;
    } catch (error) {
      assert.ok(error instanceof Mistake, `${JSON.stringify(text)}: ${error.stack}`);
      assert.match(error.message, /^[“\p{L}].+[.?]$/su, text);
      assert.ok(0 <= error.from && error.from <= error.to && error.to <= text.length, JSON.stringify(text));
      const { line, caret } = caretAt(text, error);
      assert.ok([...caret].length <= Math.max(1, [...line].length), JSON.stringify(text));
      found.mistakes += 1;
    }
  }
  assert.ok(found.graphs > 100 && found.mistakes > 1500, JSON.stringify(found));
});

test("misspelt functions get suggestions", () => {
  const near = (name) => catalogue.nearest(name);
  assert.deepEqual(["tahn", "Tanh", "ln", "clmp", "logistic"].map(near), ["tanh", "tanh", "log", "clamp", "sigmoid"]);
  assert.deepEqual(["f", "whatever"].map(near), [null, null]);
  assert.equal(distance("tahn", "tanh"), 1);
});

test("names of Object.prototype are ordinary leaves", () => {
  const { leaves } = buildTape(parse("constructor*toString + __proto__", catalogue), catalogue);
  assert.deepEqual([...leaves.keys()], ["constructor", "toString", "__proto__"]);
  assert.match(wrong("constructor(a)")[0], /Unknown function/);
});

test("constants are formatted in formulas as the player formats them", () => {
  const hole = (place, least = 0) => String.fromCharCode(0xe000 + 8 * place + least);
  const template = { text: `x\uf8f1${hole(2, 5)}\uf8f2 + ${hole(1)}`, mathml: `<mrow>${hole(2)}</mrow>` };
  const found = (x) => Object.values(fillPlaceholders(template, 2, [x]));
  assert.deepEqual(found(2), [`x² + ${hole(1)}`, "<mrow><mn>2</mn></mrow>"]);
  assert.deepEqual(found(-1), [`x⁻¹ + ${hole(1)}`, "<mrow><mrow><mo>−</mo><mn>1</mn></mrow></mrow>"]);
  assert.equal(found(-0.5)[0], `x^(−0.5) + ${hole(1)}`);
});

test("new leaves get values inside the domains of their operations, and old ones keep theirs", () => {
  const numbers = (text, known = new Map()) => [...initialValues(buildTape(parse(text, catalogue), catalogue), known, catalogue)];
  assert.deepEqual(numbers("a*b + c"), [["a", 2], ["b", -3], ["c", 0.5]]); // prettier-ignore
  assert.deepEqual(numbers("a + log(b)"), [["a", 2], ["b", 0.5]]); // prettier-ignore
  assert.deepEqual(numbers("b + a", new Map([["a", 7]])), [["b", 2], ["a", 7]]); // prettier-ignore
});

test("a slider's range includes its value, and never shrinks", () => {
  assert.deepEqual([2, 5, 7, -99, 100, 101].map((x) => sliderBound(x)), [5, 10, 10, 100, 1000, 1000]);
  assert.deepEqual([sliderBound(5, 5), sliderBound(2, 10), sliderBound(11, 10)], [5, 10, 20]);
  assert.ok(sliderBound(1e300) > 1e300);
  assert.deepEqual([sliderBound(0), sliderBound(-0), sliderBound(1e-300)], [5, 5, 5]);
  assert.ok([1e308, -Number.MAX_VALUE].every((x) => Number.isFinite(2 * sliderBound(x))));
});

test("a link round-trips", () => {
  const shared = { text: "h = a*b;\n<b>& #1 + h", numbers: new Map([["a", 2.5], ["α", -1e-7], ["z", -0], ["__proto__", 3]]) }; // prettier-ignore
  assert.deepEqual(parseLink(createLink(shared)), shared);
});

test("malformed links are handled", () => {
  assert.equal(parseLink(""), null);
  assert.equal(parseLink("#playground"), null);
  assert.equal(parseLink("#f=%20"), null);
  const { text, numbers } = parseLink("#f=a%ZZ&n=a:nan,b:1e999,c:x,<b>:1,d,:2,e:1:2,ok:3,ok2:−4");
  assert.equal(text, "a%ZZ");
  assert.deepEqual([...numbers], [["e", 1], ["ok", 3], ["ok2", -4]]); // prettier-ignore
  assert.ok(parseLink(`#f=${"a".repeat(90_000)}&n=${"a:1,".repeat(5000)}`).text.length < 21_000);
});

test("carets are below the span, also in a long line", () => {
  const at = (text, from, to) => Object.values(caretAt(text, { from, to }));
  assert.deepEqual(at("a + b", 2, 3), ["a + b", "  ^"]);
  assert.deepEqual(at("a\nb ^ 2\nc", 4, 5), ["b ^ 2", "  ^"]);
  assert.deepEqual(at("", 0, 0), ["", "^"]);
  assert.deepEqual(at("α😀 $", 4, 5), ["α😀 $", "   ^"]);
  assert.deepEqual(at("\n# nothing", 0, 0), ["", "^"]);
  assert.deepEqual(at("a +\n", 2, 9), ["a +", "  ^"]);
  assert.deepEqual(at(`${"😀".repeat(40)}$${"😀".repeat(40)}`, 80, 81)[0], `…${"😀".repeat(24)}$${"😀".repeat(12)}…`);
  const [line, caret] = at(`${"x".repeat(80)}$${"y".repeat(80)}`, 80, 81);
  assert.equal(line, `…${"x".repeat(24)}$${"y".repeat(12)}…`);
  assert.equal(caret.length, line.indexOf("$") + 1);
  assert.ok(at("x".repeat(500), 0, 500).every((one) => one.length < 50));
});
