/** Loop programs, by which a trace defines how tensors are computed: see minigrad/backends/loops.py. */

import { max } from "../base/math.js";
import { compiled, interpreted } from "./expression.js";

/** @typedef {(number | Float64Array)[]} Memory */

const NAMES = "oabcdefhijk"; // the result, then the inputs

const LARGEST = 1e7; // elements of a result: more would freeze the page
const LONGEST = 1e8; // iterations of a loop

/**
 * Compile a program of a trace to a function of a node, its gradient and its operands. Throws an Error for an invalid
 * program, since traces come from files too; the function returns null if it reads a missing array.
 * @param {Record<string, any>} program
 * @returns {(given: Memory) => Float64Array | null}
 */
export function programOf({ "first": first, "sizes": sizes, "result": result, "loops": loops }) {
  const rounds = loops.map((/** @type {any} */ { "n": n }) => n.reduce((/** @type {any} */ a, /** @type {any} */ b) => a * max(b, 1), 1));
  if (!(max(...sizes.flat()) <= LARGEST && max(...rounds) <= LONGEST)) throw new Error("too long");
  const steps = loops.map(stepOf);
  return (given) => {
    try {
      const memory = given.map((x) => (typeof x === "number" ? Float64Array.of(x) : x));
      sizes.forEach((/** @type {number | [number]} */ size, /** @type {number} */ k) => {
        if (Array.isArray(size)) memory[first + k] = Float64Array.from({ length: size[0] }, (_, i) => i);
      });
      steps.forEach((/** @type {any} */ step, /** @type {number} */ k) => {
        const { "o": o, "by": by } = loops[k];
        const empty = by === "max" ? -Infinity : by ? Infinity : -0; // −0: adding −0 to it gives −0
        memory[o[0]] ??= new Float64Array(sizes[o[0] - first]).fill(empty);
        step(memory);
      });
      return /** @type {Float64Array | undefined} */ (memory[result]) ?? null;
    } catch {
      return null;
    }
  };
}

/**
 * Compile one loop: `o` describes its output, `x` its inputs.
 * @param {Record<string, any>} loop @returns {(memory: Memory) => void}
 */
function stepOf({ "f": f, "n": n, "o": o, "x": x, "by": by }) {
  /** @type {number[][]} */
  const views = [o, ...x];
  const text = by ? `${by}(o, ${f})` : `(o + ${f})`;
  const place = (/** @type {number} */ k) => {
    const [, offset, ...strides] = views[k];
    return `m${k}[${[Number(offset), ...strides.map((by, d) => `i${d} * ${Number(by)}`)].join(" + ")}]`;
  };
  const around = n.map((/** @type {number} */ size, /** @type {number} */ d) => {
    return `for (let i${d} = 0; i${d} < ${Number(size)}; i${d} += 1)`;
  });
  const named = views.map(([array], k) => `const m${k} = m[${Number(array)}];`);
  return (
    compiled(text, (name) => place(NAMES.indexOf(name)), (sum) => `${[...named, ...around, place(0)].join(" ")} = ${sum}`) ??
    loopOver(n, views, interpreted(text, (name) => NAMES.indexOf(name)))
  );
}

/** @param {number[]} sizes @param {number[][]} views @param {import("./expression.js").Computation} f */
function loopOver(sizes, views, f) {
  return (/** @type {any} */ memory) => {
    const arrays = views.map(([array]) => memory[array]);
    const at = views.map(([, offset]) => offset);
    const done = sizes.map(() => 0);
    const frame = views.map(() => 0);
    for (let d = 0; d >= 0; ) {
      for (let k = 0; k < at.length; k += 1) frame[k] = arrays[k][at[k]];
      arrays[0][at[0]] = f(frame);
      for (d = sizes.length - 1; d >= 0; d -= 1) {
        done[d] += 1;
        const by = done[d] < sizes[d] ? 1 : 1 - sizes[d];
        for (let k = 0; k < at.length; k += 1) at[k] += by * views[k][d + 2];
        if (by === 1) break;
        done[d] = 0;
      }
    }
  };
}
