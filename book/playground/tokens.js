/** The tokeniser: numbers, names, signs, and line ends. Anything else is a mistake. */

/** A mistake in an expression: a message and a span. */
export class Mistake extends Error {
  /** @param {string} message @param {number} from @param {number} [to] */
  constructor(message, from, to = from + 1) {
    super(message);
    this.from = from;
    this.to = to;
  }
}

/**
 * A token. `text` is the source, except that names are normalised as in Python.
 * @typedef {{kind: "number" | "name" | "sign" | "end", text: string, from: number, to: number, line: number}} Token
 */

/** Maximum length of an expression, in characters. */
export const MAX_LENGTH = 20_000;

const DIGITS = "\\d+(?:_\\d+)*";
const NUMBER = new RegExp(`(?:${DIGITS}\\.?(?:${DIGITS})?|\\.${DIGITS})(?:e[+-]?${DIGITS})?`, "iy");
const NAME = /[\p{XID_Start}_]\p{XID_Continue}*/uy;
const SIGN = /\*\*|[-+*/(),=]/y;
const BLANK = /[^\S\n]+|#[^\n]*/uy;

/** Notations of other languages, with advice. */
const FOREIGN_SIGNS = /** @type {[RegExp, string][]} */ ([
  [/\^/y, "“^” is not a power. Write **, as in a**2."],
  [/[×·∙⋅]/uy, "Write * for a product."],
  [/÷/uy, "Write / for a quotient."],
  [/[⁰¹²³⁴-⁹]+/uy, "Write ** for a power, as in a**2."],
  [/[₀-₉]+/uy, "Write subscripts with _, as in w_1."],
  [/\/\//y, "“//” is not supported. Write floor(a / b)."],
  [/%/y, "“%” is not supported. Write remainder(a, b)."],
  [/@/y, "“@” is for matrices. Write * for a product."],
  [/[<>!=]=|[<>]/y, "Comparisons are not supported. Use max, min, relu or abs."],
  [/\*\*=|[-+*/]=/y, "Augmented assignment is not supported. Write c = a + b."],
  [/\./y, "Methods are not supported. Write tanh(x) for x.tanh()."],
  [/[[\]]/y, "Indexing is not supported. Write w_0 for w[0]."],
  [/[{}]/y, "Use parentheses, ( and ), for grouping."],
  [/[|‖]/uy, "Write abs(x) for an absolute value."],
  [/√/uy, "Write sqrt(x) for a square root."],
]);

/**
 * Tokenise an expression. As in Python, a newline inside parentheses is ignored.
 * @param {string} text
 * @returns {Token[]}
 */
export function tokenize(text) {
  if (text.length > MAX_LENGTH) {
    throw new Mistake(`This expression is too long: it has ${text.length} characters, at most ${MAX_LENGTH} are allowed.`, 0);
  }
  /** @type {Token[]} */
  const tokens = [];
  let at = 0;
  let depth = 0;
  let line = 0;
  const match = (/** @type {RegExp} */ pattern) => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0] ?? "";
  };
  const add = (/** @type {Token["kind"]} */ kind, /** @type {string} */ written, value = written) => {
    tokens.push({ kind, text: value, from: at, to: at + written.length, line });
    at += written.length;
  };
  while (at < text.length) {
    const blank = match(BLANK);
    at += blank.length;
    if (blank) continue;
    const one = text[at];
    if (one === "\n" || one === ";") {
      if (depth && one === "\n") at += 1;
      else add("end", one);
      line += Number(one === "\n");
      continue;
    }
    const foreignSign = FOREIGN_SIGNS.find(([pattern]) => match(pattern) && !(one === "." && match(NUMBER)));
    const number = match(NUMBER);
    const name = match(NAME);
    const sign = one === "−" ? "-" : match(SIGN);
    if (number) addNumber(number);
    else if (name) add("name", name, name.normalize("NFKC"));
    else if (foreignSign) throw new Mistake(foreignSign[1], at, at + match(foreignSign[0]).length);
    else if (!sign) throw unexpectedCharacter(text, at);
    else {
      depth = Math.max(0, depth + (sign === "(" ? 1 : sign === ")" ? -1 : 0));
      add("sign", one === "−" ? one : sign, sign);
    }
  }
  add("end", "");
  return tokens;

  /** @param {string} written */
  function addNumber(written) {
    add("number", written, written.replaceAll("_", ""));
    const after = match(NAME) || match(NUMBER);
    if (!after) return;
    const end = at + after.length;
    if (/^[\p{XID_Start}_]/u.test(after)) throw new Mistake(`Write ${written}*${after} for a product.`, at, end);
    throw new Mistake(`“${written}${after}” is not a number.`, at - written.length, end);
  }
}

/** @param {string} text @param {number} at */
function unexpectedCharacter(text, at) {
  const one = String.fromCodePoint(/** @type {number} */ (text.codePointAt(at)));
  return new Mistake(`Unexpected character “${one}”.`, at, at + one.length);
}
