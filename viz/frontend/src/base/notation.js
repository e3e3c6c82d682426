/**
 * Formatting of numbers and formulas. The output equals that of minigrad_viz.trace.notation and
 * minigrad.backends.formula, character by character, so that a page shows what Python shows.
 */

import { abs, finite, floor, log10, max, min } from "./math.js";

// --- numbers ---------------------------------------------------------------------------------------------------------

/**
 * Format a number with 6 significant digits, as Python formats floats; −0 has no sign, and null is a dash.
 * @param {number | null} x
 */
export function number(x) {
  if (x === null) return "—";
  const text = sixDigits(x);
  if (text === "-0") return "0.0";
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

/** Format as `number`, with a true minus sign, ∞ and NaN. @param {number | null} x */
export function pretty(x) {
  return number(x).replaceAll("-", "−").replace("inf", "∞").replace("nan", "NaN");
}

/**
 * Round a number to the three significant digits that drawings show, but keep all digits of its integer part.
 * @param {number} x
 */
export const shortened = (x) => (finite(x) ? Number(roundedToEven(x, max(3, min(6, 1 + floor(log10(abs(x) || 1)))))) : x);

/** Format as `pretty`, with three significant digits. @param {number | null} x */
export const brief = (x) => pretty(x === null ? x : shortened(x));

/**
 * Format as `brief`, in parentheses if negative, for use after an operator.
 * @param {number} x @param {typeof brief} [show]
 */
export const bracketed = (x, show = brief) => (x < 0 ? `(${show(x)})` : show(x));

/** Format as Python's "%.6g". @param {number} x */
function sixDigits(x) {
  if (x - x !== 0) return x > 0 ? "inf" : x < 0 ? "-inf" : "nan";
  const [mantissa, power] = roundedToEven(x, 6).split("e");
  const size = abs(Number(power));
  if (-5 < Number(power) && Number(power) < 6) return Object.is(x, -0) ? "-0" : String(Number(`${mantissa}e${power}`));
  return `${Number(mantissa)}e${power[0]}${size < 10 ? 0 : ""}${size}`;
}

/**
 * Format in exponential notation with `digits` digits. Ties round to even; JavaScript's own rounding rounds them up.
 * @param {number} x @param {number} digits
 */
function roundedToEven(x, digits) {
  const more = x.toExponential(digits);
  const even = /[02468]5e/.test(more);
  const half = even && RegExp(`\\.\\d{${digits - 1}}50*e`).test(x.toExponential(60)); // exact digits: slow
  return half ? more.replace("5e", "e") : x.toExponential(digits - 1);
}

/**
 * Parse a number written by a person: decimal, “inf” or “nan”. Return null if it is not a number.
 * @param {string} text
 */
export function readNumber(text) {
  const written = text.trim().replaceAll("−", "-").replace("∞", "inf");
  if (/^nan$/i.test(written)) return NaN;
  if (/^[+-]?inf(inity)?$/i.test(written)) return written[0] === "-" ? -Infinity : Infinity;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(written) ? Number(written) : null;
}

// --- names -----------------------------------------------------------------------------------------------------------

const SMALL_ZERO = 0x2080; // ₀; the other nine follow

/** Format an integer in subscript digits. @param {number} n */
export const subscript = (n) => String(n).replace(/\d/g, (digit) => String.fromCharCode(SMALL_ZERO + Number(digit)));

/** Convert subscript digits to ASCII: "v₁₂" to "v12". @param {string} text */
export const plainDigits = (text) => text.replace(/[₀-₉]/g, (small) => String(small.charCodeAt(0) - SMALL_ZERO));

/**
 * Truncate to at most `limit` characters, the last one an ellipsis.
 * @param {string} text
 * @param {number} limit
 */
export function shorten(text, limit) {
  const characters = [...text];
  return characters.length <= limit ? text : `${characters.slice(0, limit - 1).join("")}…`;
}

/**
 * Truncate as `shorten`, but keep trailing subscript digits and the end of a dotted path: they may be all that
 * distinguishes two names.
 * @param {string} name
 * @param {number} limit
 */
export function shortenName(name, limit) {
  if ([...name].length > limit && name.includes(".") && !name.includes(" ")) {
    const parts = name.split(".");
    const end = parts.map((_, k) => `…${parts.slice(k).join(".")}`).find((one, k) => k && [...one].length <= limit);
    name = end ?? name;
  }
  const start = name.replace(/[₀-₉]+$/, "");
  const tail = name.slice(start.length);
  return tail.length < floor(limit / 2) ? shorten(start, limit - tail.length) + tail : shorten(name, limit);
}

/** Escape a string for XML or HTML content. @param {string} text */
function escaped(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };
  return text.replace(/[&<>"']/g, (one) => entities[/** @type {keyof typeof entities} */ (one)]);
}

// --- formulas: minigrad/backends/formula/writing.py defines templates -----------------------------------------------

/**
 * The values for the placeholders of a formula: the node itself, then its operands, each as a name or a number.
 * @typedef {(string | number)[]} Parts
 */

/**
 * A notation. `part` returns a formatted part and its precedence, `fence` parenthesises, `apart` separates a factor
 * from what follows.
 * @typedef {object} Notation
 * @property {(part: string | number) => [string, number]} part
 * @property {(text: string) => string} fence
 * @property {(rest: string) => string} apart
 */

const [LOOSE, PREFIX, PRODUCT, POWER, ATOM] = [0, 2, 3, 4, 5];
const FIRST_HOLE = 0xe000;
const [APART_MARK, RAISED_MARK, RAISED_END] = ["\uf8f0", "\uf8f1", "\uf8f2"];
const WORD_LETTERS = "[\\p{L}\\p{N}_\u0300-\u036f.'\"′…()\\[\\]]+";
const ATOMIC_NAME = new RegExp(`^(?!.*[²³¹⁰-⁹])${WORD_LETTERS}(?: ${WORD_LETTERS})*$`, "u");

/**
 * Format a formula as a line of text.
 * @param {{text: string}} template
 * @param {Parts} parts
 */
export function formulaText(template, parts) {
  return filled([...template.text], parts, TEXT_NOTATION);
}

/**
 * Format a formula as a `<math>` element.
 * @param {{mathml: string}} template
 * @param {Parts} parts
 */
export function formulaMathML(template, parts) {
  const inner = filled([...template.mathml], parts, MATHML_NOTATION);
  return `<math xmlns="http://www.w3.org/1998/Math/MathML">${inner}</math>`;
}

/** Format a formula in LaTeX. @param {{latex: string}} template @param {Parts} parts */
export function formulaLatex(template, parts) {
  return filled([...template.latex], parts, LATEX_NOTATION).replaceAll("‖", "\\|");
}

/** @param {string[]} template @param {Parts} parts @param {Notation} notation @returns {string} */
function filled(template, parts, notation) {
  let rest = "";
  for (let k = template.length - 1; k >= 0; k -= 1) { // from the end: the separator before a factor depends on what follows
    const one = template[k];
    if (one === APART_MARK) {
      rest = notation.apart(rest);
    } else if (one === RAISED_END) {
      const start = openingOf(template, k);
      rest = raised(filled(template.slice(start + 1, k), parts, notation)) + rest;
      k = start;
    } else if (one >= "\ue000" && one < APART_MARK) {
      const code = one.charCodeAt(0) - FIRST_HOLE;
      const [text, binds] = notation.part(parts[code >> 3]);
      rest = (binds < (code & 7) ? notation.fence(text) : text) + rest;
    } else {
      rest = one + rest;
    }
  }
  return rest;
}

/** Return where the exponent that ends at `end` begins. @param {string[]} template @param {number} end */
function openingOf(template, end) {
  let depth = 0;
  for (let k = end; ; k -= 1) {
    if (template[k] === RAISED_END) depth += 1;
    if (template[k] === RAISED_MARK && (depth -= 1) === 0) return k;
  }
}

/** Format an exponent in a line of text: superscript digits for an integer. @param {string} text */
function raised(text) {
  const whole = /^\(?(−?\p{Nd}+)\)?$/u.exec(text);
  return whole ? whole[1].replace(/[0-9−]/g, (one) => (one === "−" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(one)])) : `^${text}`;
}

/** @param {string} name */
const nameBinds = (name) => (ATOMIC_NAME.test(name) ? ATOM : LOOSE);

/** @type {Notation} */
const TEXT_NOTATION = {
  part: (part) => {
    if (typeof part === "string") return [part, nameBinds(part)];
    const text = digitsOf(part).replaceAll("-", "−");
    return part < 0 ? [`−${text}`, PREFIX] : [text, text.includes("e") ? POWER : ATOM];
  },
  fence: (text) => `(${text})`,
  apart: (rest) => (/^ [\p{Nd}|‖]/u.test(rest) ? `·${rest}` : rest.slice(1)),
};

/** @type {Notation} */
const MATHML_NOTATION = {
  part: (part) => (typeof part === "string" ? [`<mi>${escaped(part)}</mi>`, nameBinds(part)] : mathmlNumber(part)),
  fence: (text) => `<mrow><mo>(</mo>${text}<mo>)</mo></mrow>`,
  apart: (rest) => (/^(?:<[^>]*>)*[\p{Nd}|‖]/u.test(rest) ? `<mo>·</mo>${rest}` : `<mspace width=".17em"/>${rest}`),
};

/** @type {Notation} */
const LATEX_NOTATION = {
  part: (part) => (typeof part === "string" ? [latexName(part), nameBinds(part)] : latexNumber(part)),
  fence: (text) => `\\left(${text}\\right)`,
  apart: (rest) => (/^ [\p{Nd}|‖]/u.test(rest) ? `\\cdot${rest}` : rest.slice(1)),
};

/** @type {Record<string, string>} */
const LATEX_CHARACTERS = { "\\": "\\backslash{}", "^": "\\hat{}", "~": "\\sim{}", "<": "{<}", ">": "{>}", " ": "\\ " };

/** @param {string} name */
export function latexName(name) {
  const [, letter, digits] = /^([a-z])(\d+)$/i.exec(plainDigits(name)) ?? [];
  if (letter) return `${letter}_{${digits}}`;
  const special = (/** @type {string} */ one) => LATEX_CHARACTERS[one] ?? `\\${one}`;
  return /^[a-z]$/i.test(name) ? name : `\\mathrm{${name.replace(/[\\^~<> #$%&_{}]/g, special)}}`;
}

/** @param {number} x @returns {[string, number]} */
export function latexNumber(x) {
  if (x < 0) return [`-${latexNumber(-x)[0]}`, PREFIX];
  const [digits, power] = digitsOf(x).replace("∞", "\\infty").replace("NaN", "\\mathrm{NaN}").split("e");
  if (power === undefined) return [digits, ATOM];
  const tens = `10^{${Number(power)}}`;
  return digits === "1" ? [tens, POWER] : [`${digits} \\cdot ${tens}`, PRODUCT];
}

/** Format the magnitude of a number for a formula. @param {number} x */
function digitsOf(x) {
  return sixDigits(abs(x)).replace("inf", "∞").replace("nan", "NaN");
}

/** Format a number in MathML: 2.5e-7 is 2.5 · 10⁻⁷. @param {number} x @returns {[string, number]} */
function mathmlNumber(x) {
  if (x < 0) return [`<mrow><mo>−</mo>${mathmlNumber(-x)[0]}</mrow>`, PREFIX];
  const [digits, power] = digitsOf(x).split("e");
  if (power === undefined) return [finite(x) ? `<mn>${digits}</mn>` : `<mi>${digits}</mi>`, ATOM];
  const tens = `<msup><mrow><mn>10</mn></mrow><mrow>${mathmlNumber(Number(power))[0]}</mrow></msup>`;
  return digits === "1" ? [tens, POWER] : [`<mrow><mn>${digits}</mn><mo>·</mo>${tens}</mrow>`, PRODUCT];
}
