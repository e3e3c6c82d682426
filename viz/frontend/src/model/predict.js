/**
 * Predict mode: the user enters the next gradient before it is shown. Each common mistake leads to a number of its own,
 * so a wrong number identifies the mistake.
 *
 * No message gives the answer away: it says which numbers to use, and how.
 */

import { abs, isFinite, floor, log10, max } from "../base/math.js";
import { parenthesize, formatPretty, parseDecimal, shorten } from "../base/notation.js";

/** @typedef {import("../base/types.js").Playback} Playback */
/** @typedef {import("../base/types.js").Diagnosis} Diagnosis */

/**
 * The values of a backward event, and the names in it.
 * @typedef {object} Question
 * @property {number} upstream
 * @property {number} local
 * @property {number} contribution
 * @property {number | null} before
 * @property {number} total the answer
 * @property {string} from name of the node whose gradient is upstream
 * @property {string} to name of the node whose gradient is asked for
 * @property {string} localName the local derivative, such as ∂v₅/∂a
 * @property {{value: number, name: string}[]} factors local derivatives that upstream is a product of
 */

/**
 * A mistake: its verdict, the number that it leads to, and the explanation.
 * @typedef {[Diagnosis["verdict"], number, string]} Mistake
 */

/**
 * Diagnose a prediction of the gradient after the next backward event. Throws an Error if `questionAt` finds no
 * question.
 * @param {number} answer
 * @param {Playback} playback
 * @returns {Diagnosis}
 */
export function diagnose(answer, playback) {
  const position = questionAt(playback);
  if (position < 0) throw new Error("Nothing to predict: no backward step follows, or its gradient is an array.");
  const question = createQuestion(playback, position);
  const { contribution, before, total } = question;
  const scale = max(abs(before ?? 0), abs(contribution));
  if (matchesDigits(answer, total, scale)) return { verdict: "right", text: `Right: ${solutionText(question)}.` };
  const matches = (/** @type {Mistake} */ [, x]) => matchesDigits(answer, x, scale) && !matchesDigits(x, total, scale);
  const mistake = findMistakes(question).find(matches);
  if (mistake) return { verdict: mistake[0], text: mistake[2] };
  const isClose = abs(answer - total) <= 0.05 * abs(total);
  return { verdict: "wrong", text: isClose ? "Close: give three correct digits." : hintText(question) };
}

/**
 * Return the position of the next backward event if its values are known scalars; else -1.
 * @param {Playback} playback
 */
export function questionAt({ timeline, position, moment }) {
  const next = max(position, timeline.seed) + 1;
  if (timeline.seed < 0 || next > timeline.last) return -1;
  return isAskable(moment(next)) ? next : -1;
}

/** Whether all values of a moment are known scalars. @param {import("../base/types.js").Moment} moment */
export function isAskable({ upstream, local, contribution, before, total, met }) {
  const required = met > 1 ? [upstream, local, contribution, total, before] : [upstream, local, contribution, total];
  return required.every((x) => typeof x === "number");
}

/**
 * Parse a user's number: "−3", "-3", "0.25", "1/3", "2e-3", "inf" or "NaN". Throws an Error with advice.
 * @param {string} text
 */
export function parseNumber(text) {
  const input = text.trim();
  const advice = "enter a number such as −3, 0.25, 1/3 or 2e-3";
  if (input === "") throw new Error(`The field is empty: ${advice}.`);
  if (/^[+-]?\d*,\d+$/.test(input)) throw new Error(`Use a decimal point: ${input.replace(",", ".")}.`);
  const parts = input.split("/").map(parseDecimal);
  const quoted = `“${shorten(input, 20)}”`;
  if (parts.length > 2 || parts.includes(null)) throw new Error(`${quoted} is not a number: ${advice}.`);
  const [numerator, denominator = 1] = /** @type {number[]} */ (parts);
  if (denominator === 0) throw new Error(`${quoted} divides by 0: ${advice}.`);
  return numerator / denominator;
}

/**
 * Whether `answer` equals `number` to three digits. Differences far below `scale` are rounding errors.
 * @param {number} answer
 * @param {number} number
 * @param {number} [scale]
 */
export function matchesDigits(answer, number, scale = 0) {
  if (!isFinite(number) || !isFinite(answer)) return Object.is(answer, number);
  const unit = 10 ** (floor(log10(abs(number))) - 2); // of the third digit; 0 for 0
  // Slightly more than half a unit, because 0.0005 is not exactly half of 0.001.
  return abs(answer - number) <= max(0.500001 * unit, 1e-9 * scale);
}

// --- questions ------------------------------------------------------------------------------------------------------

/** @param {Playback} playback @param {number} position @returns {Question} */
function createQuestion(playback, position) {
  const { graph, numbers } = playback;
  const { edge, upstream, local, contribution, before, total } = playback.moment(position);
  const { title, result, operand } = graph;
  const derivativeName = (/** @type {number} */ at) => `∂${title(result[at])}/∂${title(operand[at])}`;
  return {
    upstream: Number(upstream),
    local: Number(local),
    contribution: Number(contribution),
    before: before === null ? null : Number(before),
    total: Number(total),
    from: title(result[edge]),
    to: title(operand[edge]),
    localName: derivativeName(edge),
    factors: pathFactors(playback, result[edge]).map((at) => ({ value: Number(numbers.local(at)), name: derivativeName(at) })),
  };
}

/**
 * Return the edges on the path to a node while there is only one: its gradient is the product of their derivatives.
 * @param {Playback} playback
 * @param {number} node
 */
function pathFactors({ graph, timeline, numbers }, node) {
  const edges = [];
  let at = node;
  while (timeline.contributions(at) === 1) {
    const edge = numbers.runs[timeline.run].edge[timeline.arrivals(at)[0]];
    edges.push(edge);
    at = graph.result[edge];
  }
  return edges;
}

// --- mistakes -------------------------------------------------------------------------------------------------------

/**
 * List the mistakes with their numbers; single mistakes come before combined ones.
 * @param {Question} question
 * @returns {Mistake[]}
 */
function findMistakes(question) {
  const { contribution, before, total, to } = question;
  const mistakes = findProductMistakes(question);
  if (before === null) return mistakes;
  const currentText = `${to} already has ${formatPretty(before)}`;
  return [
    ["accumulation", contribution, `${formatPretty(contribution)} is this step's contribution. ${currentText}: add the two.`],
    ["accumulation", before, `${currentText}. Add this step's contribution.`],
    ...mistakes.map(([verdict, x, text]) => /** @type {Mistake} */ ([verdict, before + x, `Check the contribution. ${text}`])),
    ["sign", -total, `Right magnitude, wrong sign: ${currentText}, and the contribution has a sign too.`],
    ...mistakes.map(([verdict, x, text]) => /** @type {Mistake} */ ([verdict, x, `${text} And ${currentText}: add the two.`])),
  ];
}

/**
 * List the mistakes in a contribution: a wrong sign or a missing factor.
 * @param {Question} question
 * @returns {Mistake[]}
 */
function findProductMistakes({ upstream, local, contribution, from, localName, factors }) {
  const count = ["neither is", "one of the two is", "both are"][Number(upstream < 0) + Number(local < 0)];
  const product = `the gradient of ${from}, ${formatPretty(upstream)}, times ${localName} = ${formatPretty(local)}`;
  /** @type {Mistake[]} */
  const mistakes = [
    ["sign", -contribution, `Right magnitude, wrong sign. It is ${product}, and ${count} negative.`],
    [
      "factor",
      upstream,
      `${formatPretty(upstream)} is only the gradient of ${from}. Multiply it by the local derivative, ${localName} = ${formatPretty(local)}.`,
    ],
    [
      "factor",
      local,
      `${formatPretty(local)} is only the local derivative ${localName}. ` +
        `Multiply it by the upstream gradient, that of ${from}: ${formatPretty(upstream)}.`,
    ],
  ];
  for (const { value, name } of factors) {
    const text = `A factor is missing: ${name} = ${formatPretty(value)} is on the path.`;
    if (value !== 0) mistakes.push(["factor", contribution / value, text]);
  }
  return mistakes;
}

// --- messages -------------------------------------------------------------------------------------------------------

/** @param {Question} question */
function solutionText({ upstream, local, contribution, before, total }) {
  const product = `${formatPretty(upstream)} × ${parenthesize(local, formatPretty)} = ${formatPretty(contribution)}`;
  if (before === null) return product;
  return `${product}, and ${formatPretty(before)} + ${parenthesize(contribution, formatPretty)} = ${formatPretty(total)}`;
}

/** @param {Question} question */
function hintText({ upstream, local, before, from, to, localName }) {
  const product = `Multiply the gradient of ${from}, ${formatPretty(upstream)}, by the local derivative ${localName} = ${formatPretty(local)}`;
  const sum = before === null ? "" : `, and add what ${to} already has: ${formatPretty(before)}`;
  return `Not yet. ${product}${sum}.`;
}
