/**
 * Predict: the reader types the next gradient before it is shown. A wrong answer is not just wrong: each of the usual
 * slips leads to a number of its own, so the number tells which slip it was.
 *
 * No text gives the answer away before it is right: it says which numbers to take, and what to do with them.
 */

import { pretty } from "../engine/notation.js";

/** @typedef {import("../types.js").Playback} Playback */
/** @typedef {import("../types.js").Diagnosis} Diagnosis */
/** @typedef {"contribution" | "total"} Asked */
/** @typedef {{asked?: Asked, show?: (x: number) => string, title?: (node: number) => string}} Options */

/**
 * The numbers of an event, the names in it, and how to write numbers.
 * @typedef {object} Question
 * @property {Asked} asked
 * @property {number} upstream
 * @property {number} local
 * @property {number} contribution
 * @property {number | null} before
 * @property {number} total
 * @property {string} from whose gradient is upstream
 * @property {string} to whose gradient is asked for
 * @property {string} by the local derivative, as ∂v₅/∂a
 * @property {{value: number, name: string}[]} factors local derivatives on the way before, which upstream holds
 * @property {(x: number) => string} show
 */

/** A slip: the number that it leads to, and what to tell. @typedef {[Diagnosis["verdict"], number, string]} Slip */

/**
 * What to make of the answer to: what does the next event of the backward pass bring ("contribution"), or what does
 * the gradient become ("total")? Throws an Error where `questionAt` finds nothing to ask.
 * @param {number} answer
 * @param {Playback} playback
 * @param {Options} [options]
 * @returns {Diagnosis}
 */
export function diagnose(answer, playback, { asked = "total", show = pretty, title = playback.graph.title } = {}) {
  const position = questionAt(playback);
  if (position < 0) throw new Error("There is no number to predict: no backward step follows, or it moves an array.");
  const question = questionFrom(playback, position, asked, show, title);
  const target = asked === "total" ? question.total : question.contribution;
  const scale = asked === "total" ? Math.max(Math.abs(question.before ?? 0), Math.abs(question.contribution)) : 0;
  const given = (/** @type {number} */ number) => sameNumber(answer, number, scale);
  if (given(target)) return { verdict: "right", text: `Right: ${workedOut(question)}.` };
  const slip = slipsIn(question).find(([, number]) => given(number) && !sameNumber(number, target, scale));
  if (slip) return { verdict: slip[0], text: slip[2] };
  const near = Math.abs(answer - target) <= 0.05 * Math.abs(target);
  return { verdict: "wrong", text: near ? "Nearly: give three digits that are right." : recipe(question) };
}

/**
 * The position of the next event of the backward pass, if its numbers are single and known; else -1.
 * @param {Playback} playback
 */
export function questionAt({ timeline, position, moment }) {
  const next = Math.max(position, timeline.seed) + 1;
  if (timeline.seed < 0 || next > timeline.last) return -1;
  return askable(moment(next)) ? next : -1;
}

/** Whether all numbers of a moment are single and known. @param {import("../types.js").Moment} moment */
export function askable({ upstream, local, contribution, before, total, met }) {
  const needed = met > 1 ? [upstream, local, contribution, total, before] : [upstream, local, contribution, total];
  return needed.every((x) => typeof x === "number");
}

/**
 * The number that a reader wrote: "−3", "-3", "0.25", "1/3", "2e-3", "inf" or "NaN". Throws an Error that says how.
 * @param {string} text
 */
export function parseNumber(text) {
  const written = text.trim().replaceAll("−", "-").replaceAll("∞", "inf");
  const how = "write a number, such as −3, 0.25, 1/3 or 2e-3";
  if (written === "") throw new Error(`Nothing is written: ${how}.`);
  if (/^[+-]?\d*,\d+$/.test(written)) throw new Error(`Write decimals with a point: ${written.replace(",", ".")}.`);
  const parts = written.split("/").map((part) => readPart(part.trim()));
  const short = text.trim().length > 20 ? `${text.trim().slice(0, 19)}…` : text.trim();
  if (parts.length > 2 || parts.includes(null)) throw new Error(`“${short}” is no number: ${how}.`);
  const [above, below = 1] = /** @type {number[]} */ (parts);
  if (below === 0) throw new Error(`“${short}” divides by 0: ${how}.`);
  return above / below;
}

/** @param {string} text @returns {number | null} */
function readPart(text) {
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  return /^nan$/i.test(text) ? NaN : null;
}

/**
 * Whether a reader's number is that number to three digits. What lies far below `scale` is a rest of rounding: 0.
 * @param {number} answer
 * @param {number} number
 * @param {number} [scale]
 */
export function sameNumber(answer, number, scale = 0) {
  if (!Number.isFinite(number) || !Number.isFinite(answer)) return Object.is(answer, number);
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(number))) - 2); // of the third digit; 0 for 0
  // A little more than half a unit, for 0.0005 is not exactly half of 0.001.
  return Math.abs(answer - number) <= Math.max(0.500001 * unit, 1e-9 * scale);
}

// --- what is asked ---------------------------------------------------------------------------------------------------

/**
 * @param {Playback} playback
 * @param {number} position
 * @param {Asked} asked
 * @param {(x: number) => string} show
 * @param {(node: number) => string} title
 * @returns {Question}
 */
function questionFrom(playback, position, asked, show, title) {
  const { graph } = playback;
  const { edge, upstream, local, contribution, before, total } = playback.moment(position);
  const by = (/** @type {number} */ at) => `∂${title(graph.result[at])}/∂${title(graph.operand[at])}`;
  return {
    asked,
    upstream: Number(upstream),
    local: Number(local),
    contribution: Number(contribution),
    before: before === null ? null : Number(before),
    total: Number(total),
    from: title(graph.result[edge]),
    to: title(graph.operand[edge]),
    by: by(edge),
    factors: factorsBefore(playback, graph.result[edge]).map((at) => {
      return { value: Number(playback.numbers.local(at)), name: by(at) };
    }),
    show,
  };
}

/**
 * The edges on the way to a node's gradient, as long as there is one way only: the gradient is the product of theirs.
 * @param {Playback} playback
 * @param {number} node
 */
function factorsBefore({ graph, timeline, numbers }, node) {
  const edges = [];
  let at = node;
  while (timeline.contributions(at) === 1) {
    const edge = numbers.runs[timeline.run].edge[timeline.arrivals(at)[0]];
    edges.push(edge);
    at = graph.result[edge];
  }
  return edges;
}

// --- slips -----------------------------------------------------------------------------------------------------------

/**
 * The slips, each with its number; those that are one slip away come before those that are two.
 * @param {Question} question
 * @returns {Slip[]}
 */
function slipsIn(question) {
  const { asked, before } = question;
  if (asked === "total" && before !== null) return slipsInSum(question, before);
  /** @type {Slip[]} */
  const slips = [["sign", -question.contribution, signText(question)]];
  for (const [number, text] of missingFactors(question)) slips.push(["factor", number, text]);
  if (before === null) return slips;
  const { total, to, show } = question;
  const sum = `${show(total)} is what the gradient of ${to} becomes. Asked is only what this step adds to it.`;
  const old = `${show(before)} is what ${to} has already. Asked is what this step adds to it.`;
  return [["accumulation", total, sum], ...slips, ["accumulation", before, old]];
}

/** @param {Question} question @param {number} before @returns {Slip[]} */
function slipsInSum(question, before) {
  const { contribution, total, to, show } = question;
  const has = `${to} has ${show(before)} already`;
  const factors = missingFactors(question);
  const factorSlip = (/** @type {number} */ number, /** @type {string} */ text) =>
    /** @type {Slip} */ (["factor", number, text]);
  return [
    ["accumulation", contribution, `${show(contribution)} is what this step brings. ${has}: add the two.`],
    ["sign", before - contribution, `Look at what you added. ${signText(question)}`],
    ["accumulation", before, `${has}. What this step brings is added to it.`],
    ...factors.map(([x, text]) => factorSlip(before + x, `Look at what you added. ${text}`)),
    ["sign", -total, `The size is right, the sign is not: ${has}, and what this step brings has a sign too.`],
    ["sign", -contribution, `${signText(question)} And ${has}: add the two.`],
    ...factors.map(([x, text]) => factorSlip(x, `${text} And ${has}: add the two.`)),
  ];
}

/** @param {Question} question */
function signText({ upstream, local, from, by, show }) {
  const negative = Number(upstream < 0) + Number(local < 0);
  const count = ["neither is", "one of the two is", "both are"][negative];
  const factors = `the gradient of ${from}, ${show(upstream)}, times ${by} = ${show(local)}`;
  return `The size is right, the sign is not. It is ${factors}, and ${count} negative.`;
}

/**
 * The products in which a factor was left out, and what to tell.
 * @param {Question} question
 * @returns {[number, string][]}
 */
function missingFactors({ upstream, local, contribution, from, by, factors, show }) {
  const here = `the local derivative, ${by} = ${show(local)}`;
  const above = `what comes from above, the gradient of ${from}: ${show(upstream)}`;
  /** @type {[number, string][]} */
  const found = [
    [upstream, `${show(upstream)} is the gradient of ${from} alone. Times ${here}.`],
    [local, `${show(local)} is the local derivative ${by} alone. Times ${above}.`],
  ];
  for (const { value, name } of factors) {
    const text = `A factor is missing: ${name} = ${show(value)} is on the way.`;
    if (value !== 0) found.push([contribution / value, text]);
  }
  return found;
}

// --- texts -----------------------------------------------------------------------------------------------------------

/** @param {Question} question */
function workedOut({ asked, upstream, local, contribution, before, total, show }) {
  const bracket = (/** @type {number} */ x) => (x < 0 ? `(${show(x)})` : show(x));
  const product = `${show(upstream)} × ${bracket(local)} = ${show(contribution)}`;
  if (asked === "contribution" || before === null) return product;
  return `${product}, and ${show(before)} + ${bracket(contribution)} = ${show(total)}`;
}

/** @param {Question} question */
function recipe({ asked, upstream, local, before, from, to, by, show }) {
  const product = `Take the gradient of ${from}, ${show(upstream)}, times the local derivative ${by} = ${show(local)}`;
  if (asked === "contribution" || before === null) return `Not yet. ${product}.`;
  return `Not yet. ${product}, and add what ${to} has already: ${show(before)}.`;
}
