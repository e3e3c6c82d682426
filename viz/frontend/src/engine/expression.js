/**
 * The expression language in which a trace defines operations: scalar JavaScript such as "(g * Math.cos(a))", fully
 * parenthesised. Expressions are always parsed here, and only what was parsed is run: compiled by the browser, or, if
 * the page forbids that, interpreted by closures.
 */

import { NUMERIC } from "./numeric.js";

/** @typedef {(memory: any) => any} Computation on values in memory */

const TOKEN = /\d[\d.]*(?:e[-+]?\d+)?|Math\.\w+|[\p{L}_][\p{L}\p{N}_]*|[(),]|[^\s\p{L}\p{N}_(),]+/gu;

/** Return a function or constant of Math or NUMERIC; undefined if there is none. @param {string} name */
function lookUp(name) {
  const inMath = name.startsWith("Math.");
  const [table, key] = /** @type {[any, string]} */ (inMath ? [Math, name.slice(5)] : [NUMERIC, name]);
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/**
 * Parse an expression. `leaf` converts a number or a name, `call` a function and its arguments. Throws an Error for
 * anything outside the language.
 * @template T
 * @param {string} text
 * @param {(leaf: number | null | string) => T} leaf
 * @param {(f: (...numbers: any[]) => any, args: T[]) => T} call
 */
export function parseExpression(text, leaf, call) {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const fail = () => {
    throw new Error(`Cannot parse “${text}”: unexpected “${tokens[at - 1] ?? "end of input"}”.`);
  };
  /** @returns {T} */
  const read = () => {
    const token = tokens[at++] ?? fail();
    if (token === "(") return readBrackets("");
    if (!/^[\p{L}\d_]/u.test(token)) fail();
    if (tokens[at] === "(") {
      at += 1;
      return readBrackets(token);
    }
    const value = /^\d/.test(token) ? Number(token) : lookUp(token);
    if (value !== undefined && typeof value !== "function") return leaf(value);
    return token.includes(".") ? fail() : leaf(token);
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
    const f = lookUp(name || signs);
    const isValid = typeof f === "function" && args.length > 0 && f.length === args.length;
    return isValid && (!name || signs === ",".repeat(args.length - 1)) ? call(f, args) : fail();
  };
  const result = read();
  return at++ < tokens.length ? fail() : result;
}

/**
 * Compile an expression to JavaScript. `locate` maps a name to its location in the memory m, `wrap` wraps the
 * expression. Return null if the page forbids `new Function`.
 * @param {string} text
 * @param {(name: string) => string} locate
 * @param {(expression: string) => string} wrap
 * @returns {Computation | null}
 */
export function compileExpression(text, locate, wrap) {
  /** @type {unknown[]} */
  const functions = [];
  const expression = parseExpression(
    text,
    (leaf) => (typeof leaf === "string" ? locate(leaf) : Object.is(leaf, -0) ? "-0" : `${leaf}`),
    (f, args) => `f${functions.push(f) - 1}(${args})`,
  );
  try {
    return new Function(...functions.map((_, k) => `f${k}`), `return m => { ${wrap(expression)} }`)(...functions);
  } catch {
    return null;
  }
}

/**
 * Interpret an expression, without compiling it.
 * @param {string} text
 * @param {(name: string) => number} locate
 * @returns {Computation}
 */
export function interpretExpression(text, locate) {
  return parseExpression(
    text,
    (leaf) => {
      if (typeof leaf !== "string") return () => leaf;
      const at = locate(leaf);
      return (memory) => memory[at];
    },
    (f, [first, second, third]) => {
      if (third) return (memory) => f(first(memory), second(memory), third(memory));
      return second ? (memory) => f(first(memory), second(memory)) : (memory) => f(first(memory));
    },
  );
}
