/**
 * Functions that formulas use and that Math lacks, or whose edge cases differ from Python's: they agree with minigrad's
 * "python" device at 0, infinity and NaN.
 */

import { abs, exp, isFinite, floor, round, sign, sqrt } from "../base/math.js";

const SELU_SCALE = 1.0507009873554805; // Klambauer et al. 2017, appendix A
const SELU_ALPHA = 1.6732632423543772;

/** @type {Record<string, number | null | ((...numbers: any[]) => any)>} */
export const NUMERIC = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "===": (a, b) => a === b,
  "!==": (a, b) => a !== b,
  "&&": (a, b) => a && b,
  "||": (a, b) => a || b,
  "?:": (condition, a, b) => (condition ? a : b),
  NaN,
  Infinity,
  null: null,
  erf,
  quotient,
  remainder: (a, b) => {
    if (b === 0 || !isFinite(a)) return NaN;
    const rest = a % b;
    if (rest === 0) return b < 0 ? -0 : 0;
    return rest < 0 !== b < 0 ? rest + b : rest;
  },
  /** As in C: 1 to any power is 1, and so is −1 to an infinite power. */
  pow: (a, b) => (a === 1 || (a === -1 && (b === Infinity || b === -Infinity)) ? 1 : a ** b),
  /** Ties round to even. */
  round: (a) => {
    const rounded = round(a);
    return abs(a % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
  },
  sign: (a) => (a > 0 ? 1 : a < 0 ? -1 : 0),
  max: (a, b) => (a > b || a !== a ? a : b),
  min: (a, b) => (a < b || a !== a ? a : b),
  clamp,
  isnan: (a) => a !== a,
  isinf: (a) => a === Infinity || a === -Infinity,
  isfinite: (a) => isFinite(a),
  not: (a) => a === 0,
  sigmoid: (a) => {
    if (a >= 0) return 1 / (1 + exp(-a));
    const e = exp(a); // for a < 0 the form above would overflow
    return e / (1 + e);
  },
  softplus: (a) => (a <= 0 ? 0 : a) + Math.log1p(exp(-abs(a))),
  relu: (a) => (a <= 0 ? 0 : a), // in this order NaN stays NaN
  relu6: (a) => (a <= 0 ? 0 : a >= 6 ? 6 : a),
  hardtanh: clamp,
  leakyrelu: (a, slope) => (a > 0 ? a : a * slope),
  prelu: (a, b) => (a > 0 ? a : a * b),
  step: (a, alpha) => (a > 0 ? 1 : a === a ? alpha : NaN),
  elu: (a, alpha) => (a <= 0 ? alpha * Math.expm1(a) : a),
  selu: (a) => (a <= 0 ? SELU_SCALE * SELU_ALPHA * Math.expm1(a) : SELU_SCALE * a),
};

/** @param {number} a @param {number | null} min @param {number | null} max */
function clamp(a, min, max) {
  const low = min !== null && (a < min || min !== min) ? min : a;
  return max !== null && (low > max || max !== max) ? max : low;
}

/**
 * Floor division, exact: 1 / 0.1 rounds to 10, but 0.1 fits into 1 only nine times.
 * @param {number} a
 * @param {number} b
 */
function quotient(a, b) {
  if (b === 0) return a / b;
  if (!isFinite(a)) return NaN;
  const rest = a % b;
  const integer = (a - rest) / b - (rest !== 0 && b < 0 !== rest < 0 ? 1 : 0);
  if (integer === 0) return a / b < 0 ? -0 : 0;
  const floored = floor(integer); // an integer, up to rounding
  return integer - floored > 0.5 ? floored + 1 : floored;
}

/**
 * The error function. Up to 2, by the series whose terms are all positive, so that no digits cancel (Abramowitz and
 * Stegun, "Handbook of Mathematical Functions", 1964, formula 7.1.6); above, by the continued fraction of its
 * complement (formula 7.1.14), evaluated from its end.
 * @param {number} a
 */
function erf(a) {
  const x = abs(a);
  if (x > 6) return sign(a); // within 2e-17 of it
  if (x > 2) {
    let tail = x;
    for (let k = 60; k > 0; k -= 1) tail = x + k / 2 / tail;
    return sign(a) * (1 - exp(-x * x) / (sqrt(Math.PI) * tail));
  }
  let term = a;
  let sum = a;
  for (let k = 1; abs(term) > 1e-17 * abs(sum); k += 1) {
    term *= (2 * x * x) / (2 * k + 1);
    sum += term;
  }
  return a === 0 || a !== a ? a : (2 / sqrt(Math.PI)) * exp(-x * x) * sum;
}
