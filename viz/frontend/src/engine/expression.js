/**
 * The language in which a trace says how operations compute: JavaScript for one number, such as "(g * Math.cos(a))".
 * It is always read by `readExpression`, which knows nothing else, and only what was read is ever run: translated into
 * a function of the browser's, or, where the page forbids that, interpreted.
 */

import { NUMERIC } from "./numeric.js";

/**
 * @typedef {{kind: "number", value: number | null} | {kind: "name", name: string}
 *   | {kind: "call", name: string, args: Expression[]} | {kind: "sign", sign: string, args: Expression[]}} Expression
 */

/** @typedef {(frame: (number | null)[]) => any} Closure */

const EXPRESSION_TOKEN =
  /\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|Math\.\w+|[\p{L}_][\p{L}\p{N}_]*|===|!==|<=|>=|&&|\|\||[-+*/<>!?:(),])/uy;
const MATH_NAMES = new Set([
  ..."abs ceil floor trunc exp expm1 log log1p log2 sqrt sin cos tan asin acos atan atan2".split(" "),
  ..."sinh cosh tanh asinh acosh atanh".split(" "),
]);
/** @type {Map<string, number | null>} */
const LITERALS = new Map([
  ["Infinity", Infinity],
  ["NaN", NaN],
  ["Math.PI", Math.PI],
  ["Math.E", Math.E],
]).set("null", /** @type {any} */ (null));
/** Signs between two expressions, loosest first. */
const LEVELS = [["||"], ["&&"], ["===", "!=="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/"]];

/** @type {Record<string, (a: any, b: any) => any>} */
const BETWEEN = {
  "||": (a, b) => a || b,
  "&&": (a, b) => a && b,
  "===": (a, b) => a === b,
  "!==": (a, b) => a !== b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
};

/** Where reading has come to. @typedef {{text: string, tokens: string[], at: number}} Cursor */

/**
 * What `text` says. Throws an Error for anything that is not of this language.
 * @param {string} text
 * @returns {Expression}
 */
export function readExpression(text) {
  const cursor = { text, tokens: expressionTokens(text), at: 0 };
  const whole = readChoice(cursor);
  return cursor.at < cursor.tokens.length ? refuseExpression(text, cursor.tokens[cursor.at]) : whole;
}

/** @param {string} text @param {string | undefined} at @returns {never} */
function refuseExpression(text, at) {
  throw new Error(`“${text}” is no expression that the player knows: it stops at “${at ?? "its end"}”.`);
}

/** @param {string} text @returns {string[]} */
function expressionTokens(text) {
  const tokens = [];
  EXPRESSION_TOKEN.lastIndex = 0;
  const end = text.trimEnd().length;
  while (EXPRESSION_TOKEN.lastIndex < end) {
    const from = EXPRESSION_TOKEN.lastIndex;
    const found = EXPRESSION_TOKEN.exec(text);
    if (found === null) return refuseExpression(text, text.slice(from));
    tokens.push(found[1]);
  }
  return tokens;
}

/** Go past a token if it is there. @param {Cursor} cursor @param {string} token */
function takeToken(cursor, token) {
  return cursor.tokens[cursor.at] === token && (cursor.at += 1) > 0;
}

/** @param {Cursor} cursor @param {string} token */
function needToken(cursor, token) {
  if (!takeToken(cursor, token)) refuseExpression(cursor.text, cursor.tokens[cursor.at]);
}

/** @param {Cursor} cursor @returns {Expression} */
function readChoice(cursor) {
  const condition = readBetween(cursor, 0);
  if (!takeToken(cursor, "?")) return condition;
  const then = readChoice(cursor);
  needToken(cursor, ":");
  return { kind: "sign", sign: "?", args: [condition, then, readChoice(cursor)] };
}

/** @param {Cursor} cursor @param {number} level @returns {Expression} */
function readBetween(cursor, level) {
  if (level === LEVELS.length) return readBefore(cursor);
  let left = readBetween(cursor, level + 1);
  while (LEVELS[level].includes(cursor.tokens[cursor.at])) {
    const sign = cursor.tokens[cursor.at++];
    left = { kind: "sign", sign, args: [left, readBetween(cursor, level + 1)] };
  }
  return left;
}

/** @param {Cursor} cursor @returns {Expression} */
function readBefore(cursor) {
  const sign = cursor.tokens[cursor.at];
  if (takeToken(cursor, "-") || takeToken(cursor, "!")) return { kind: "sign", sign, args: [readBefore(cursor)] };
  if (!takeToken(cursor, "(")) return readAtom(cursor);
  const inner = readChoice(cursor);
  needToken(cursor, ")");
  return inner;
}

/** A number, a name or a call. @param {Cursor} cursor @returns {Expression} */
function readAtom(cursor) {
  const token = cursor.tokens[cursor.at] ?? refuseExpression(cursor.text, undefined);
  if (!/^[\p{L}_\d]/u.test(token)) refuseExpression(cursor.text, token);
  cursor.at += 1;
  if (/^\d/.test(token)) return { kind: "number", value: Number(token) };
  const literal = LITERALS.get(token);
  if (literal !== undefined) return { kind: "number", value: literal };
  const inMath = token.startsWith("Math.");
  if (!takeToken(cursor, "(")) return inMath ? refuseExpression(cursor.text, token) : { kind: "name", name: token };
  const known = inMath ? MATH_NAMES.has(token.slice(5)) : Object.hasOwn(NUMERIC, token);
  if (!known) throw new Error(`The player has no function “${token}”.`);
  /** @type {Expression[]} */
  const args = [];
  while (!takeToken(cursor, ")")) {
    if (args.length) needToken(cursor, ",");
    args.push(readChoice(cursor));
  }
  return { kind: "call", name: token, args };
}

/** The names in an expression. @param {Expression} tree @returns {Set<string>} */
export function namesIn(tree) {
  if (tree.kind === "name") return new Set([tree.name]);
  return new Set(tree.kind === "number" ? [] : tree.args.flatMap((inner) => [...namesIn(inner)]));
}

/**
 * An expression as JavaScript source, in which the names are called as `names` says, and helpers are those of an
 * object N.
 * @param {Expression} tree
 * @param {Map<string, string>} names
 * @returns {string}
 */
export function expressionSource(tree, names) {
  if (tree.kind === "number") return `(${tree.value})`;
  if (tree.kind === "name") return /** @type {string} */ (names.get(tree.name));
  const args = tree.args.map((inner) => expressionSource(inner, names));
  if (tree.kind === "call") return `${tree.name.startsWith("Math.") ? "" : "N."}${tree.name}(${args.join(", ")})`;
  if (args.length === 3) return `(${args[0]} ? ${args[1]} : ${args[2]})`;
  return args.length === 1 ? `(${tree.sign} ${args[0]})` : `(${args[0]} ${tree.sign} ${args[1]})`;
}

/**
 * An expression as a function of a frame, in which a name's number stands where `places` says.
 * @param {Expression} tree
 * @param {Map<string, number>} places
 * @returns {Closure}
 */
export function expressionClosure(tree, places) {
  if (tree.kind === "number") return () => tree.value;
  if (tree.kind === "name") {
    const place = /** @type {number} */ (places.get(tree.name));
    return (frame) => frame[place];
  }
  const [first, second, third] = tree.args.map((inner) => expressionClosure(inner, places));
  if (tree.kind === "call") {
    const { name } = tree;
    /** @type {(...args: any[]) => any} */
    const f = name.startsWith("Math.") ? /** @type {any} */ (Math)[name.slice(5)] : NUMERIC[name];
    if (third) return (frame) => f(first(frame), second(frame), third(frame));
    return second ? (frame) => f(first(frame), second(frame)) : (frame) => f(first(frame));
  }
  if (third) return (frame) => (first(frame) ? second(frame) : third(frame));
  const { sign } = tree;
  if (!second) return sign === "!" ? (frame) => !first(frame) : (frame) => -first(frame);
  const both = BETWEEN[sign];
  return (frame) => both(first(frame), second(frame));
}
