/** Loop programs, by which a trace defines how tensors are computed: see minigrad/backends/loops.py. */

import { max } from "../base/math.js";
import { compileExpression, interpretExpression } from "./expression.js";

/** @typedef {(number | Float64Array)[]} Memory */

const NAMES = "oabcdefhijk"; // the result, then the inputs

const MAX_ELEMENTS = 1e7; // elements of a result: more would freeze the page
const MAX_ITERATIONS = 1e8; // iterations of a loop

/**
 * Compile a program of a trace to a function of a node, its gradient and its operands. Throws an Error for an invalid
 * program, since traces come from files too; the function returns null if it reads a missing array.
 * @param {Record<string, any>} program
 * @returns {(given: Memory) => Float64Array | null}
 */
export function compileProgram({ "first": first, "sizes": sizes, "result": result, "loops": loops }) {
  const iterations = loops.map((/** @type {any} */ { "n": n }) => n.reduce((/** @type {any} */ a, /** @type {any} */ b) => a * max(b, 1), 1));
  if (!(max(...sizes.flat()) <= MAX_ELEMENTS && max(...iterations) <= MAX_ITERATIONS)) throw new Error("too long");
  const steps = loops.map(compileLoop);
  return (args) => {
    try {
      const memory = args.map((x) => (typeof x === "number" ? Float64Array.of(x) : x));
      sizes.forEach((/** @type {number | [number]} */ size, /** @type {number} */ k) => {
        if (Array.isArray(size)) memory[first + k] = Float64Array.from({ length: size[0] }, (_, i) => i);
      });
      steps.forEach((/** @type {any} */ step, /** @type {number} */ k) => {
        const { "o": o, "by": by } = loops[k];
        const initial = by === "max" ? -Infinity : by ? Infinity : -0; // −0: adding −0 to it gives −0
        memory[o[0]] ??= new Float64Array(sizes[o[0] - first]).fill(initial);
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
function compileLoop({ "f": f, "n": n, "o": o, "x": x, "by": by }) {
  /** @type {number[][]} */
  const views = [o, ...x];
  const text = by ? `${by}(o, ${f})` : `(o + ${f})`;
  const address = (/** @type {number} */ k) => {
    const [, offset, ...strides] = views[k];
    return `m${k}[${[Number(offset), ...strides.map((by, d) => `i${d} * ${Number(by)}`)].join(" + ")}]`;
  };
  const headers = n.map((/** @type {number} */ size, /** @type {number} */ d) => {
    return `for (let i${d} = 0; i${d} < ${Number(size)}; i${d} += 1)`;
  });
  const declarations = views.map(([array], k) => `const m${k} = m[${Number(array)}];`);
  return (
    compileExpression(text, (name) => address(NAMES.indexOf(name)), (sum) => `${[...declarations, ...headers, address(0)].join(" ")} = ${sum}`) ??
    interpretLoop(n, views, interpretExpression(text, (name) => NAMES.indexOf(name)))
  );
}

/** @param {number[]} sizes @param {number[][]} views @param {import("./expression.js").Computation} f */
function interpretLoop(sizes, views, f) {
  return (/** @type {any} */ memory) => {
    const arrays = views.map(([array]) => memory[array]);
    const at = views.map(([, offset]) => offset);
    const counters = sizes.map(() => 0);
    const operands = views.map(() => 0);
    for (let d = 0; d >= 0; ) {
      for (let k = 0; k < at.length; k += 1) operands[k] = arrays[k][at[k]];
      arrays[0][at[0]] = f(operands);
      for (d = sizes.length - 1; d >= 0; d -= 1) {
        counters[d] += 1;
        const by = counters[d] < sizes[d] ? 1 : 1 - sizes[d];
        for (let k = 0; k < at.length; k += 1) at[k] += by * views[k][d + 2];
        if (by === 1) break;
        counters[d] = 0;
      }
    }
  };
}
