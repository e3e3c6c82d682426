/**
 * The language in which a trace says how operations compute: JavaScript for one number, such as "(g * Math.cos(a))",
 * with brackets around each sign and what it joins. It is always read here, and only what was read is ever run: as code
 * that the browser translates, or, where the page forbids that, as functions of functions.
 */

import { NUMERIC } from "./numeric.js";

/** @typedef {(memory: any) => any} Computation from numbers that lie at known places */

const TOKEN = /\d[\d.]*(?:e[-+]?\d+)?|Math\.\w+|[\p{L}_][\p{L}\p{N}_]*|[(),]|[^\s\p{L}\p{N}_(),]+/gu;

/** A function or a constant, of Math's or ours; undefined if there is none. @param {string} name */
function known(name) {
  const inMath = name.startsWith("Math.");
  const [table, own] = /** @type {[any, string]} */ (inMath ? [Math, name.slice(5)] : [NUMERIC, name]);
  return Object.hasOwn(table, own) ? table[own] : undefined;
}

/**
 * What `text` says: `leaf` makes something of a number, or of a name, `call` of a function and what it is given.
 * Throws an Error for anything that is not of this language.
 * @template T
 * @param {string} text
 * @param {(leaf: number | null | string) => T} leaf
 * @param {(f: (...numbers: any[]) => any, args: T[]) => T} call
 */
export function readExpression(text, leaf, call) {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const refuse = () => {
    throw new Error(`“${text}” is no expression that the player knows: it stops at “${tokens[at - 1] ?? "its end"}”.`);
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
  /** What a function is given, or what signs join. @param {string} name */
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
    if (!name && signs === "-" && args.length === 1) args.unshift(leaf(-0)); // −x is −0 − x, for zeros too
    const f = known(name || signs);
    const fits = typeof f === "function" && args.length > 0 && f.length === args.length;
    return fits && (!name || signs === ",".repeat(args.length - 1)) ? call(f, args) : refuse();
  };
  const whole = read();
  return at++ < tokens.length ? refuse() : whole;
}

/**
 * What a text computes, as code: `place` says where a name's number lies in the memory m, `around` what is done with
 * the expression. Null where the page forbids to make code of text.
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
 * The same without code.
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
