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
const MATH = new Set(
  "abs acos acosh asin asinh atan atan2 atanh ceil cos cosh exp expm1 floor log log1p log2 sin sinh sqrt tan tanh trunc".split(" "),
);
const LITERALS = new Map(
  /** @type {[string, number | null][]} */ ([["Infinity", Infinity], ["NaN", NaN], ["null", null], ["Math.PI", Math.PI], ["Math.E", Math.E]]),
);
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

/**
 * What `text` says. Throws an Error for anything that is not of this language.
 * @param {string} text
 * @returns {Expression}
 */
export function readExpression(text) {
  const tokens = expressionTokens(text);
  let at = 0;
  const refuse = () => {
    throw new Error(`“${text}” is no expression that the player knows: it stops at “${tokens[at] ?? "its end"}”.`);
  };
  /** @param {string} token */
  const take = (token) => tokens[at] === token && (at += 1) > 0;
  /** @param {string} token */
  const need = (token) => take(token) || refuse();
  /** @returns {Expression} */
  const choice = () => {
    const condition = between(0);
    if (!take("?")) return condition;
    const then = choice();
    need(":");
    return { kind: "sign", sign: "?", args: [condition, then, choice()] };
  };
  /** @param {number} level @returns {Expression} */
  const between = (level) => {
    if (level === LEVELS.length) return before();
    let left = between(level + 1);
    while (LEVELS[level].includes(tokens[at])) {
      const sign = tokens[at++];
      left = { kind: "sign", sign, args: [left, between(level + 1)] };
    }
    return left;
  };
  /** @returns {Expression} */
  const before = () => {
    const sign = tokens[at];
    if (take("-") || take("!")) return { kind: "sign", sign, args: [before()] };
    return atom();
  };
  /** @returns {Expression} */
  const atom = () => {
    if (take("(")) {
      const inner = choice();
      need(")");
      return inner;
    }
    const token = tokens[at] ?? refuse();
    if (/^\d/.test(token)) return { kind: "number", value: Number(tokens[at++]) };
    if (!/^[\p{L}_]/u.test(token)) refuse();
    at += 1;
    const literal = LITERALS.get(token);
    if (literal !== undefined) return { kind: "number", value: literal };
    if (!take("(")) return token.startsWith("Math.") ? refuse() : { kind: "name", name: token };
    const known = token.startsWith("Math.") ? MATH.has(token.slice(5)) : Object.hasOwn(NUMERIC, token);
    if (!known) throw new Error(`The player has no function “${token}”.`);
    /** @type {Expression[]} */
    const args = [];
    while (!take(")")) {
      if (args.length) need(",");
      args.push(choice());
    }
    return { kind: "call", name: token, args };
  };
  const whole = choice();
  return at < tokens.length ? refuse() : whole;
}

/** @param {string} text @returns {string[]} */
function expressionTokens(text) {
  const tokens = [];
  EXPRESSION_TOKEN.lastIndex = 0;
  const end = text.trimEnd().length;
  while (EXPRESSION_TOKEN.lastIndex < end) {
    const from = EXPRESSION_TOKEN.lastIndex;
    const found = EXPRESSION_TOKEN.exec(text);
    if (found === null) throw new Error(`“${text}” is no expression that the player knows: it stops at “${text.slice(from)}”.`);
    tokens.push(found[1]);
  }
  return tokens;
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
