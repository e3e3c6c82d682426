/** Initial values and slider ranges of leaves. */

/** @typedef {import("./tape.js").Tape} Tape */

/** Used in turn, so that leaves of a small formula differ. */
const INITIAL_VALUES = [2, -3, 0.5, 1, -1, 1.5, 3, -2];
const BOUNDS = [5, 10, 20, 50, 100];
const STEPS_PER_SIDE = 100; // of a slider, per side
const MAX_BOUND = Number.MAX_VALUE / 2; // so that a slider's full range is finite

/**
 * Return values for all leaves of a tape: `previous` ones keep theirs. A new leaf gets the first value in turn inside the
 * domains of all operations that use it: a logarithm does not start at −3.
 * @param {Tape} tape @param {ReadonlyMap<string, number>} previous @param {import("./catalogue.js").Catalogue} catalogue
 * @returns {Map<string, number>}
 */
export function initialValues({ entries, leaves }, previous, catalogue) {
  const domains = new Map([...leaves.keys()].map((name) => [name, /** @type {[number, number][]} */ ([])]));
  for (const { op, operands } of entries) {
    operands.forEach((at, slot) => {
      const { name, kind } = entries[at];
      if (op !== null && kind === "l") domains.get(name ?? "")?.push(catalogue.op(op).domain[slot]);
    });
  }
  return new Map([...domains].map(([name, all], k) => [name, previous.get(name) ?? initialValue(all, k)]));
}

/** @param {[number, number][]} domains @param {number} k index of the leaf */
function initialValue(domains, k) {
  const candidates = INITIAL_VALUES.map((_, at) => INITIAL_VALUES[(at + k) % INITIAL_VALUES.length]);
  return candidates.find((x) => domains.every(([low, high]) => low <= x && x <= high)) ?? candidates[0];
}

/**
 * Return the bound of a slider, symmetric around 0: `before` if possible, so that it does not change while the slider
 * moves; else larger, with room beyond the number.
 * @param {number} x @param {number} [before]
 */
export function sliderBound(x, before = 0) {
  const size = Math.abs(x);
  if (before && size <= before) return before;
  return BOUNDS.find((reach) => size < reach) ?? Math.min(10 ** Math.ceil(Math.log10(size) + 1e-9), MAX_BOUND);
}

/** Format a number for a field or a link, keeping the sign of 0. @param {number} x */
export const formatFieldNumber = (x) => (Object.is(x, -0) ? "-0" : String(x));

/** Return the step of a slider. @param {number} reach */
export const sliderStep = (reach) => reach / STEPS_PER_SIDE;
