/**
 * The expression language in which a trace defines operations: scalar JavaScript such as "(g * Math.cos(a))", fully
 * parenthesised. Expressions are always parsed here, and only what was parsed is run: compiled by the browser, or, if
 * the page forbids that, interpreted by closures.
 */

import { NUMERIC } from "./numeric.js";

/** @typedef {(memory: any) => any} Computation on values in memory */

const TOKEN = /\d[\d.]*(?:e[-+]?\d+)?|Math\.\w+|[\p{L}_][\p{L}\p{N}_]*|[(),]|[^\s\p{L}\p{N}_(),]+/gu;

/** Return a function or constant of Math or NUMERIC; undefined if there is none. @param {string} name */
function known(name) {
  const inMath = name.startsWith("Math.");
  const [table, own] = /** @type {[any, string]} */ (inMath ? [Math, name.slice(5)] : [NUMERIC, name]);
  return Object.hasOwn(table, own) ? table[own] : undefined;
}

/**
 * Parse an expression. `leaf` converts a number or a name, `call` a function and its arguments. Throws an Error for
 * anything outside the language.
 * @template T
 * @param {string} text
 * @param {(leaf: number | null | string) => T} leaf
 * @param {(f: (...numbers: any[]) => any, args: T[]) => T} call
 */
export function readExpression(text, leaf, call) {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const refuse = () => {
    throw new Error(`Cannot parse “${text}”: unexpected “${tokens[at - 1] ?? "end of input"}”.`);
  };
  /** @returns {T} */
  const read = () => {
    const token = tokens[at++] ?? refuse();
    if (token === "(") return readBrackets("");
    if (!/^[\p{L}\d_]/u.test(token)) refuse();
    if (tokens[at] === "(") {
      at += 1;
      return readBrackets(token);
    }
    const value = /^\d/.test(token) ? Number(token) : known(token);
    if (value !== undefined && typeof value !== "function") return leaf(value);
    return token.includes(".") ? refuse() : leaf(token);
  };
  /** Parse arguments, or operands and their operators. @param {string} name */
  const readBrackets = (name) => {
    /** @type {T[]} */
    const args = [];
    let signs = "";
    while (tokens[at] !== ")") {
      if (/^[^\p{L}\d_(]/u.test(tokens[at] ?? "")) signs += tokens[at++];
      else args.push(read());
    }
    at += 1;
    if (!name && !signs && args.length === 1) return args[0];
    if (!name && signs === "-" && args.length === 1) args.unshift(leaf(-0)); // −x is computed as −0 − x, which is right for zeros too
    const f = known(name || signs);
    const fits = typeof f === "function" && args.length > 0 && f.length === args.length;
    return fits && (!name || signs === ",".repeat(args.length - 1)) ? call(f, args) : refuse();
  };
  const whole = read();
  return at++ < tokens.length ? refuse() : whole;
}

/**
 * Compile an expression to JavaScript. `place` maps a name to its location in the memory m, `around` wraps the
 * expression. Return null if the page forbids `new Function`.
 * @param {string} text
 * @param {(name: string) => string} place
 * @param {(expression: string) => string} around
 * @returns {Computation | null}
 */
export function compiled(text, place, around) {
  /** @type {unknown[]} */
  const functions = [];
  const expression = readExpression(
    text,
    (leaf) => (typeof leaf === "string" ? place(leaf) : Object.is(leaf, -0) ? "-0" : `${leaf}`),
    (f, args) => `f${functions.push(f) - 1}(${args})`,
  );
  try {
    return new Function(...functions.map((_, k) => `f${k}`), `return m => { ${around(expression)} }`)(...functions);
  } catch {
    return null;
  }
}

/**
 * Interpret an expression, without compiling it.
 * @param {string} text
 * @param {(name: string) => number} place
 * @returns {Computation}
 */
export function interpreted(text, place) {
  return readExpression(
    text,
    (leaf) => {
      if (typeof leaf !== "string") return () => leaf;
      const at = place(leaf);
      return (memory) => memory[at];
    },
    (f, [first, second, third]) => {
      if (third) return (memory) => f(first(memory), second(memory), third(memory));
      return second ? (memory) => f(first(memory), second(memory)) : (memory) => f(first(memory));
    },
  );
}
