/** The numbers of leaves: which they have at first, and how far their sliders reach. */

/** @typedef {import("./tape.js").Tape} Tape */

/** In turn, so that no two leaves of a small formula have the same. */
const FIRST = [2, -3, 0.5, 1, -1, 1.5, 3, -2];
const REACHES = [5, 10, 20, 50, 100];
const STEPS = 100; // of a slider, on each side
const FURTHEST = Number.MAX_VALUE / 2; // from end to end it is a number, too

/**
 * Numbers for all leaves of a tape: the `known` ones keep theirs. A new one has the first in turn that lies where all
 * operations that take it may be sampled: a logarithm is not shown of −3 at first.
 * @param {Tape} tape @param {ReadonlyMap<string, number>} known @param {import("./catalogue.js").Catalogue} catalogue
 * @returns {Map<string, number>}
 */
export function numbersFor({ entries, leaves }, known, catalogue) {
  const domains = new Map([...leaves.keys()].map((name) => [name, /** @type {[number, number][]} */ ([])]));
  for (const { op, operands } of entries) {
    operands.forEach((at, slot) => {
      const { name, kind } = entries[at];
      if (op !== null && kind === "l") domains.get(name ?? "")?.push(catalogue.op(op).domain[slot]);
    });
  }
  return new Map([...domains].map(([name, all], k) => [name, known.get(name) ?? firstNumber(all, k)]));
}

/** @param {[number, number][]} domains @param {number} k how many leaves come before it */
function firstNumber(domains, k) {
  const turn = FIRST.map((_, at) => FIRST[(at + k) % FIRST.length]);
  return turn.find((x) => domains.every(([low, high]) => low <= x && x <= high)) ?? turn[0];
}

/**
 * How far from 0 a slider goes, on both sides: as far as before, so that it does not change while it is moved; or
 * further, with room beyond the number.
 * @param {number} x @param {number} [before]
 */
export function reachOf(x, before = 0) {
  const size = Math.abs(x);
  if (before && size <= before) return before;
  return REACHES.find((reach) => size < reach) ?? Math.min(10 ** Math.ceil(Math.log10(size) + 1e-9), FURTHEST);
}

/** A number as a field or a link has it, in which 0 keeps its sign. @param {number} x */
export const written = (x) => (Object.is(x, -0) ? "-0" : String(x));

/** By how much a slider moves. @param {number} reach */
export const stepOf = (reach) => reach / STEPS;
