/**
 * Formatting of numbers and formulas. The output equals that of minigrad_viz.trace.notation and
 * minigrad.backends.formula, character by character, so that a page shows what Python shows.
 */

import { abs, isFinite, floor, log10, max, min } from "./math.js";

// --- numbers ---------------------------------------------------------------------------------------------------------

/**
 * Format a number with 6 significant digits, as Python formats floats; −0 has no sign, and null is a dash.
 * @param {number | null} x
 */
export function formatNumber(x) {
  if (x === null) return "—";
  const text = formatSixDigits(x);
  if (text === "-0") return "0.0";
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

/** Format as `formatNumber`, with a true minus sign, ∞ and NaN. @param {number | null} x */
export function formatPretty(x) {
  return formatNumber(x).replaceAll("-", "−").replace("inf", "∞").replace("nan", "NaN");
}

/**
 * Round a number to the three significant digits that drawings show, but keep all digits of its integer part.
 * @param {number} x
 */
export const roundForDisplay = (x) => (isFinite(x) ? Number(toExponentialEven(x, max(3, min(6, 1 + floor(log10(abs(x) || 1)))))) : x);

/** Format as `formatPretty`, with three significant digits. @param {number | null} x */
export const formatBrief = (x) => formatPretty(x === null ? x : roundForDisplay(x));

/**
 * Format as `formatBrief`, in parentheses if negative, for use after an operator.
 * @param {number} x @param {typeof formatBrief} [format]
 */
export const parenthesize = (x, format = formatBrief) => (x < 0 ? `(${format(x)})` : format(x));

/** Format as Python's "%.6g". @param {number} x */
function formatSixDigits(x) {
  if (x - x !== 0) return x > 0 ? "inf" : x < 0 ? "-inf" : "nan";
  const [mantissa, power] = toExponentialEven(x, 6).split("e");
  const size = abs(Number(power));
  if (-5 < Number(power) && Number(power) < 6) return Object.is(x, -0) ? "-0" : String(Number(`${mantissa}e${power}`));
  return `${Number(mantissa)}e${power[0]}${size < 10 ? 0 : ""}${size}`;
}

/**
 * Format in exponential notation with `digits` digits. Ties round to even; JavaScript's own rounding rounds them up.
 * @param {number} x @param {number} digits
 */
function toExponentialEven(x, digits) {
  const precise = x.toExponential(digits);
  const even = /[02468]5e/.test(precise);
  const half = even && RegExp(`\\.\\d{${digits - 1}}50*e`).test(x.toExponential(60)); // exact digits: slow
  return half ? precise.replace("5e", "e") : x.toExponential(digits - 1);
}

/**
 * Parse a number written by a person: decimal, “inf” or “nan”. Return null if it is not a number.
 * @param {string} text
 */
export function parseDecimal(text) {
  const normalized = text.trim().replaceAll("−", "-").replace("∞", "inf");
  if (/^nan$/i.test(normalized)) return NaN;
  if (/^[+-]?inf(inity)?$/i.test(normalized)) return normalized[0] === "-" ? -Infinity : Infinity;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(normalized) ? Number(normalized) : null;
}

// --- names -----------------------------------------------------------------------------------------------------------

const SUBSCRIPT_ZERO = 0x2080; // ₀; the other nine follow

/** Format an integer in subscript digits. @param {number} n */
export const subscript = (n) => String(n).replace(/\d/g, (digit) => String.fromCharCode(SUBSCRIPT_ZERO + Number(digit)));

/** Convert subscript digits to ASCII: "v₁₂" to "v12". @param {string} text */
export const plainDigits = (text) => text.replace(/[₀-₉]/g, (small) => String(small.charCodeAt(0) - SUBSCRIPT_ZERO));

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
function escapeXml(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };
  return text.replace(/[&<>"']/g, (one) => entities[/** @type {keyof typeof entities} */ (one)]);
}

// --- formulas: minigrad/backends/formula/printer.py defines templates -----------------------------------------------

/**
 * The values for the placeholders of a formula: the node itself, then its operands, each as a name or a number.
 * @typedef {(string | number)[]} Parts
 */

/**
 * A notation. `part` returns a formatted part and its precedence, `fence` parenthesises, `separate` separates a factor
 * from what follows.
 * @typedef {object} Notation
 * @property {(part: string | number) => [string, number]} part
 * @property {(text: string) => string} fence
 * @property {(rest: string) => string} separate
 */

const [LOOSE, PREFIX, PRODUCT, POWER, ATOM] = [0, 2, 3, 4, 5];
const FIRST_PLACEHOLDER = 0xe000;
const [SEPARATOR_MARK, EXPONENT_MARK, EXPONENT_END] = ["\uf8f0", "\uf8f1", "\uf8f2"];
const WORD_LETTERS = "[\\p{L}\\p{N}_\u0300-\u036f.'\"′…()\\[\\]]+";
const ATOMIC_NAME = new RegExp(`^(?!.*[²³¹⁰-⁹])${WORD_LETTERS}(?: ${WORD_LETTERS})*$`, "u");

/**
 * Format a formula as a line of text.
 * @param {{text: string}} template
 * @param {Parts} parts
 */
export function formulaText(template, parts) {
  return fillTemplate([...template.text], parts, TEXT_NOTATION);
}

/**
 * Format a formula as a `<math>` element.
 * @param {{mathml: string}} template
 * @param {Parts} parts
 */
export function formulaMathML(template, parts) {
  const inner = fillTemplate([...template.mathml], parts, MATHML_NOTATION);
  return `<math xmlns="http://www.w3.org/1998/Math/MathML">${inner}</math>`;
}

/** Format a formula in LaTeX. @param {{latex: string}} template @param {Parts} parts */
export function formulaLatex(template, parts) {
  return fillTemplate([...template.latex], parts, LATEX_NOTATION).replaceAll("‖", "\\|");
}

/** @param {string[]} template @param {Parts} parts @param {Notation} notation @returns {string} */
function fillTemplate(template, parts, notation) {
  let rest = "";
  for (let k = template.length - 1; k >= 0; k -= 1) { // from the end: the separator before a factor depends on what follows
    const character = template[k];
    if (character === SEPARATOR_MARK) {
      rest = notation.separate(rest);
    } else if (character === EXPONENT_END) {
      const start = exponentStart(template, k);
      rest = formatExponent(fillTemplate(template.slice(start + 1, k), parts, notation)) + rest;
      k = start;
    } else if (character >= "\ue000" && character < SEPARATOR_MARK) {
      const code = character.charCodeAt(0) - FIRST_PLACEHOLDER;
      const [text, precedence] = notation.part(parts[code >> 3]);
      rest = (precedence < (code & 7) ? notation.fence(text) : text) + rest;
    } else {
      rest = character + rest;
    }
  }
  return rest;
}

/** Return where the exponent that ends at `end` begins. @param {string[]} template @param {number} end */
function exponentStart(template, end) {
  let depth = 0;
  for (let k = end; ; k -= 1) {
    if (template[k] === EXPONENT_END) depth += 1;
    if (template[k] === EXPONENT_MARK && (depth -= 1) === 0) return k;
  }
}

/** Format an exponent in a line of text: superscript digits for an integer. @param {string} text */
function formatExponent(text) {
  const integer = /^\(?(−?\p{Nd}+)\)?$/u.exec(text);
  return integer ? integer[1].replace(/[0-9−]/g, (one) => (one === "−" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(one)])) : `^${text}`;
}

/** @param {string} name */
const namePrecedence = (name) => (ATOMIC_NAME.test(name) ? ATOM : LOOSE);

/** @type {Notation} */
const TEXT_NOTATION = {
  part: (part) => {
    if (typeof part === "string") return [part, namePrecedence(part)];
    const text = formatMagnitude(part).replaceAll("-", "−");
    return part < 0 ? [`−${text}`, PREFIX] : [text, text.includes("e") ? POWER : ATOM];
  },
  fence: (text) => `(${text})`,
  separate: (rest) => (/^ [\p{Nd}|‖]/u.test(rest) ? `·${rest}` : rest.slice(1)),
};

/** @type {Notation} */
const MATHML_NOTATION = {
  part: (part) => (typeof part === "string" ? [`<mi>${escapeXml(part)}</mi>`, namePrecedence(part)] : mathmlNumber(part)),
  fence: (text) => `<mrow><mo>(</mo>${text}<mo>)</mo></mrow>`,
  separate: (rest) => (/^(?:<[^>]*>)*[\p{Nd}|‖]/u.test(rest) ? `<mo>·</mo>${rest}` : `<mspace width=".17em"/>${rest}`),
};

/** @type {Notation} */
const LATEX_NOTATION = {
  part: (part) => (typeof part === "string" ? [latexName(part), namePrecedence(part)] : latexNumber(part)),
  fence: (text) => `\\left(${text}\\right)`,
  separate: (rest) => (/^ [\p{Nd}|‖]/u.test(rest) ? `\\cdot${rest}` : rest.slice(1)),
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
  const [digits, power] = formatMagnitude(x).replace("∞", "\\infty").replace("NaN", "\\mathrm{NaN}").split("e");
  if (power === undefined) return [digits, ATOM];
  const tens = `10^{${Number(power)}}`;
  return digits === "1" ? [tens, POWER] : [`${digits} \\cdot ${tens}`, PRODUCT];
}

/** Format the magnitude of a number for a formula. @param {number} x */
function formatMagnitude(x) {
  return formatSixDigits(abs(x)).replace("inf", "∞").replace("nan", "NaN");
}

/** Format a number in MathML: 2.5e-7 is 2.5 · 10⁻⁷. @param {number} x @returns {[string, number]} */
function mathmlNumber(x) {
  if (x < 0) return [`<mrow><mo>−</mo>${mathmlNumber(-x)[0]}</mrow>`, PREFIX];
  const [digits, power] = formatMagnitude(x).split("e");
  if (power === undefined) return [isFinite(x) ? `<mn>${digits}</mn>` : `<mi>${digits}</mi>`, ATOM];
  const tens = `<msup><mrow><mn>10</mn></mrow><mrow>${mathmlNumber(Number(power))[0]}</mrow></msup>`;
  return digits === "1" ? [tens, POWER] : [`<mrow><mn>${digits}</mn><mo>·</mo>${tens}</mrow>`, PRODUCT];
}
