/**
 * The available operations, which the book's build writes from their declarations: `book/_ext/playground.py`. Nothing
 * here depends on the name of an operation.
 */

import { interpretExpression } from "../../viz/frontend/src/engine/expression.js";
import { formulaMathML, formulaText } from "../../viz/frontend/src/base/notation.js";

/** @typedef {import("../../viz/frontend/src/base/types.js").Template} Template */

/**
 * A formula, and the local derivatives of the operands.
 * @typedef {{whole: Template, local: (Template | null)[]}} Forms
 */

/**
 * A derivative with a different formula if operand `constant` is a constant: one for negative constants and one for
 * others, and special cases. Such a formula has an extra placeholder, for the constant plus `shift`.
 * @typedef {{slot: number, constant: number, sides: {form: Template, shift: number}[], special: [number, Template][]}} Folded
 */

/**
 * An operation: `record` is its entry in a trace, `forms` are its formulas, keyed by the attributes that are missing.
 * @typedef {object} Op
 * @property {{name: string, formula: string, js: string, rules: (string | null)[], why: null}} record
 * @property {number} inputs
 * @property {string[]} attrs
 * @property {Record<string, number | null>} defaults
 * @property {[number, number][]} domain
 * @property {boolean[]} flows
 * @property {Record<string, Forms>} forms
 * @property {Folded[]} constants
 */

/** @typedef {Record<string, number | null>} Attrs */

/** @typedef {ReturnType<typeof createCatalogue>} Catalogue */

const FIRST_PLACEHOLDER = 0xe000; // as in minigrad/backends/formula/printer.py
const [EXPONENT_MARK, EXPONENT_END] = ["\uf8f1", "\uf8f2"];
/** Names of functions in other books and languages. */
const OTHER_NAMES = new Map([
  ...["ln", "loge"].map((name) => /** @type {[string, string]} */ ([name, "log"])),
  ...["sin", "cos", "tan"].map((name) => /** @type {[string, string]} */ ([`arc${name}`, `a${name}`])),
  ["power", "pow"],
  ["sgn", "sign"],
  ["logistic", "sigmoid"],
  ["swish", "silu"],
]);
const MATH_WRAPPER = { start: '<math xmlns="http://www.w3.org/1998/Math/MathML">', end: "</math>" };

/** @param {Record<string, any>} data parsed JSON */
export function createCatalogue(data) {
  /** @type {Map<string, Op>} */
  const ops = new Map(Object.entries(data.ops));
  /** Operations by the names of their functions. @type {Map<string, string>} */
  const functions = new Map(Object.entries(data.functions));
  /** @type {Map<string, (memory: (number | null)[]) => any>} */
  const compiled = new Map();
  const op = (/** @type {string} */ name) => /** @type {Op} */ (ops.get(name));
  return {
    functions,
    /** @type {Record<string, string>} by sign; unary minus is "neg" */
    operators: data.operators,
    constants: new Map([
      ["pi", Math.PI],
      ["π", Math.PI],
    ]),
    op,
    /** Return the signature of a function. @param {string} name */
    usage(name) {
      const { inputs, attrs } = op(/** @type {string} */ (functions.get(name)));
      return `${name}(${["a", "b", "c"].slice(0, inputs).concat(attrs).join(", ")})`;
    },
    /** @param {string} name */
    nearest: (name) => nearestName(name, [...functions.keys()]),
    /** Compute an operation. @param {string} name @param {number[]} operands @param {Attrs} attrs */
    calculate(name, operands, attrs) {
      const { record, attrs: names } = op(name);
      const places = [..."abc".slice(0, operands.length), ...names];
      if (!compiled.has(name)) compiled.set(name, interpretExpression(`(1 * ${record.js})`, (one) => places.indexOf(one)));
      return Number(compiled.get(name)?.([...operands, ...names.map((one) => attrs[one])]));
    },
    /**
     * Return the formula of an operation and its local derivatives, null for those without a formula.
     * @param {string} name
     * @param {(number | null)[]} constants values of constant operands, else null
     * @param {Attrs} attrs
     * @returns {Forms}
     */
    formulas(name, constants, attrs) {
      const { attrs: names, forms, constants: foldedForms, inputs } = op(name);
      const missing = names.filter((one) => attrs[one] === null);
      const attributeValues = names.map((one) => attrs[one] ?? NaN);
      const fill = (/** @type {Template} */ one) => fillPlaceholders(one, inputs + 1, attributeValues);
      const { whole, local } = forms[missing.join(",")];
      const result = { whole: fill(whole), local: local.map((one) => one && fill(one)) };
      for (const { slot, constant, sides, special } of foldedForms) {
        const x = constants[constant];
        if (x === null) continue;
        const specialForm = special.find(([one]) => one === x);
        const { form, shift } = sides[Number(x >= 0)];
        result.local[slot] = specialForm ? specialForm[1] : fillPlaceholders(form, inputs + 1, [x + shift]);
      }
      return result;
    },
  };
}

/**
 * Fill in the placeholders of a template from `first` on; those before remain.
 * @param {Template} template @param {number} first @param {number[]} numbers
 * @returns {Template}
 */
export function fillPlaceholders(template, first, numbers) {
  if (!numbers.length) return template;
  const parts = [...Array(first).fill(""), ...numbers];
  const replacePlaceholders = (/** @type {string} */ text, /** @type {(one: string) => string} */ write) => {
    const [from, to] = [FIRST_PLACEHOLDER + 8 * first, FIRST_PLACEHOLDER + 8 * (first + numbers.length) - 1];
    const placeholder = `[${String.fromCharCode(from)}-${String.fromCharCode(to)}]`;
    return text.replace(new RegExp(`${EXPONENT_MARK}${placeholder}${EXPONENT_END}|${placeholder}`, "g"), write);
  };
  return {
    text: replacePlaceholders(template.text, (text) => formulaText({ text }, parts)),
    mathml: replacePlaceholders(template.mathml, (mathml) => formulaMathML({ mathml }, parts).slice(MATH_WRAPPER.start.length, -MATH_WRAPPER.end.length)),
  };
}

/**
 * Return the function with the most similar name; null if none is similar.
 * @param {string} name @param {string[]} names
 */
function nearestName(name, names) {
  const other = OTHER_NAMES.get(name.toLowerCase());
  if (other) return other;
  // Among equally near names, prefer one of the same length.
  const distanceTo = (/** @type {string} */ one) => distance(name.toLowerCase(), one) + Math.abs(name.length - one.length) / 100;
  const [first] = names.sort((a, b) => distanceTo(a) - distanceTo(b));
  return name.length > 1 && distanceTo(first) < Math.max(1, Math.floor(name.length / 3)) + 0.5 ? first : null;
}

/**
 * Return the Damerau-Levenshtein distance (Damerau 1964).
 * @param {string} a @param {string} b
 */
export function distance(a, b) {
  const rows = [Array.from({ length: b.length + 1 }, (_, k) => k)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let k = 1; k <= b.length; k += 1) {
      const changed = rows[i - 1][k - 1] + Number(a[i - 1] !== b[k - 1]);
      row[k] = Math.min(rows[i - 1][k] + 1, row[k - 1] + 1, changed);
      const swapped = i > 1 && k > 1 && a[i - 1] === b[k - 2] && a[i - 2] === b[k - 1];
      if (swapped) row[k] = Math.min(row[k], rows[i - 2][k - 2] + 1);
    }
    rows.push(row);
  }
  return rows[a.length][b.length];
}
