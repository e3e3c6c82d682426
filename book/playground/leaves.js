/** Initial values and slider ranges of leaves. */

/** @typedef {import("./tape.js").Tape} Tape */

/** Used in turn, so that leaves of a small formula differ. */
const FIRST = [2, -3, 0.5, 1, -1, 1.5, 3, -2];
const REACHES = [5, 10, 20, 50, 100];
const STEPS = 100; // of a slider, per side
const FURTHEST = Number.MAX_VALUE / 2; // so that a slider's full range is finite

/**
 * Return values for all leaves of a tape: `known` ones keep theirs. A new leaf gets the first value in turn inside the
 * domains of all operations that use it: a logarithm does not start at −3.
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

/** @param {[number, number][]} domains @param {number} k index of the leaf */
function firstNumber(domains, k) {
  const turn = FIRST.map((_, at) => FIRST[(at + k) % FIRST.length]);
  return turn.find((x) => domains.every(([low, high]) => low <= x && x <= high)) ?? turn[0];
}

/**
 * Return the bound of a slider, symmetric around 0: `before` if possible, so that it does not change while the slider
 * moves; else larger, with room beyond the number.
 * @param {number} x @param {number} [before]
 */
export function reachOf(x, before = 0) {
  const size = Math.abs(x);
  if (before && size <= before) return before;
  return REACHES.find((reach) => size < reach) ?? Math.min(10 ** Math.ceil(Math.log10(size) + 1e-9), FURTHEST);
}

/** Format a number for a field or a link, keeping the sign of 0. @param {number} x */
export const written = (x) => (Object.is(x, -0) ? "-0" : String(x));

/** Return the step of a slider. @param {number} reach */
export const stepOf = (reach) => reach / STEPS;
