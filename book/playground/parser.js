/**
 * A recursive descent parser: expressions become lines of steps, each after its operands. Precedence and parentheses
 * are Python's. Names are resolved later, as leaves or names of lines.
 */

import { Mistake, tokenize } from "./tokens.js";

/** @typedef {import("./tokens.js").Token} Token */
/** @typedef {import("./catalogue.js").Catalogue} Catalogue */

/**
 * A number, a name, or an operation on earlier steps, whose attributes are steps too; with its span in the source.
 * @typedef {{from: number, to: number} & (
 *   {kind: "number", value: number} |
 *   {kind: "name", name: string} |
 *   {kind: "op", op: string, operands: number[], attrs: Record<string, number>})} Step
 */

/** A line: its name, or null; its steps end at `last`. @typedef {{name: string | null, last: number}} Line */
/** @typedef {{steps: Step[], lines: Line[]}} Program */

/** Maximum number of operations, which a page can lay out in a second or two, and maximum nesting depth. */
export const MAX_OPERATIONS = 500;
const MAX_DEPTH = 100;

const KEYWORDS = new Set(
  ("False None True and as assert async await break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield").split(" "),
);

/**
 * Parse an expression. Throws a Mistake with a message and a span.
 * @param {string} text @param {Catalogue} catalogue
 * @returns {Program}
 */
export function parse(text, catalogue) {
  const parser = new Parser(tokenize(text), catalogue);
  /** @type {Line[]} */
  const lines = [];
  for (;;) {
    while (parser.current.kind === "end" && parser.current.text) parser.next();
    if (parser.current.kind === "end") break;
    lines.push(parser.line());
  }
  if (!lines.length) throw new Mistake("The expression is empty. Type one, such as (a + b)*c.", 0, 0);
  return { steps: parser.steps, lines };
}

class Parser {
  /** @param {Token[]} tokens @param {Catalogue} catalogue */
  constructor(tokens, catalogue) {
    this.tokens = tokens;
    this.catalogue = catalogue;
    this.at = 0;
    this.depth = 0;
    this.ops = 0;
    /** @type {Step[]} */
    this.steps = [];
    /** Open parentheses. @type {Token[]} */
    this.open = [];
  }

  get current() {
    return this.tokens[this.at];
  }

  next() {
    return this.tokens[this.at++];
  }

  /** @param {string} sign */
  isSign(sign, token = this.current) {
    return token?.kind === "sign" && token.text === sign;
  }

  /** @param {Step} step */
  add(step) {
    if (step.kind === "op" && ++this.ops > MAX_OPERATIONS) {
      throw new Mistake(`This is too long: at most ${MAX_OPERATIONS} operations are allowed.`, step.from, step.to);
    }
    return this.steps.push(step) - 1;
  }

  // --- lines ---

  /** @returns {Line} */
  line() {
    const isNamed = this.current.kind === "name" && this.isSign("=", this.tokens[this.at + 1]);
    const name = isNamed ? this.readName() : null;
    const last = this.sum();
    const { current } = this;
    if (current.kind === "end") return { name, last };
    if (this.isSign("=")) {
      const message = isNamed ? "A line may have only one =" : "Only a name may come before =";
      throw new Mistake(`${message}, as in h = a*b.`, current.from, current.to);
    }
    throw this.unexpected(current);
  }

  readName() {
    const token = this.next();
    const { text, from, to } = token;
    this.next();
    if (this.catalogue.functions.has(text)) {
      throw new Mistake(`“${text}” is the name of a function. Use another name.`, from, to);
    }
    if (this.catalogue.constants.has(text)) {
      throw new Mistake(`“${text}” is a constant. Use another name.`, from, to);
    }
    this.rejectKeyword(token);
    return text;
  }

  /** @param {Token} token */
  rejectKeyword({ text, from, to }) {
    if (KEYWORDS.has(text)) throw new Mistake(`“${text}” is a Python keyword. Use another name, such as ${text}_.`, from, to);
  }

  /** Return the mistake for a token that neither ends a line nor is an operator. @param {Token} token */
  unexpected({ kind, text, from, to }) {
    if (kind === "sign" && text === ")") return new Mistake("Unmatched closing bracket.", from, to);
    if (kind === "sign" && text === ",") {
      return new Mistake("A comma is only allowed between the arguments of a function.", from, to);
    }
    return new Mistake(`An operator is missing before this. Write * for a product.`, from, to);
  }

  // --- operators, lowest precedence first ---

  sum() {
    return this.chain(["+", "-"], () => this.product());
  }

  product() {
    return this.chain(["*", "/"], () => this.signed());
  }

  /** Parse a left-associative chain of operators. @param {string[]} signs @param {() => number} operand */
  chain(signs, operand) {
    let left = operand();
    while (this.current.kind === "sign" && signs.includes(this.current.text)) left = this.join(left, operand);
    return left;
  }

  /** @param {number} left @param {() => number} operand */
  join(left, operand) {
    const sign = this.next();
    this.expectOperand(sign);
    const right = operand();
    const op = this.catalogue.operators[sign.text];
    const [{ from }, { to }] = [this.steps[left], this.steps[right]];
    return this.add({ kind: "op", op, operands: [left, right], attrs: {}, from, to });
  }

  /** @returns {number} */
  signed() {
    if (!this.isSign("-") && !this.isSign("+")) return this.power();
    const sign = this.next();
    this.expectOperand(sign);
    const operand = this.nested(sign, () => this.signed());
    if (sign.text === "+") return operand;
    const { to } = this.steps[operand];
    return this.add({ kind: "op", op: this.catalogue.operators.neg, operands: [operand], attrs: {}, from: sign.from, to });
  }

  /** Parse a power, which binds more tightly than a minus sign before it, and less tightly than one after it. */
  power() {
    const base = this.atom();
    return this.isSign("**") ? this.nested(this.current, () => this.join(base, () => this.signed())) : base;
  }

  /** Reject an operator without an operand. @param {Token} sign */
  expectOperand(sign) {
    const { kind, text } = this.current;
    const begins = kind === "number" || kind === "name" || (kind === "sign" && ["(", "-", "+"].includes(text));
    if (!begins) throw new Mistake(`A number or a name is missing after “${sign.text}”.`, sign.from, sign.to);
  }

  /** @template T @param {Token} token @param {() => T} read @returns {T} */
  nested(token, read) {
    if (++this.depth > MAX_DEPTH) {
      throw new Mistake(`More than ${MAX_DEPTH} brackets and signs are nested here.`, token.from, token.to);
    }
    const result = read();
    this.depth -= 1;
    return result;
  }

  // --- numbers, names, parentheses, functions ---

  /** @returns {number} */
  atom() {
    const token = this.next();
    const { kind, text, from, to } = token;
    if (kind === "number") return this.add({ kind, value: Number(text), from, to });
    if (kind === "name") return this.isSign("(") ? this.readCall(token) : this.name(token);
    if (this.isSign("(", token)) return this.nested(token, () => this.brackets(token));
    if (kind === "end") {
      const open = this.open.at(-1);
      if (open) throw new Mistake("This bracket is not closed.", open.from, open.to);
      const before = this.tokens[this.at - 2] ?? token;
      throw new Mistake("A number or a name is missing after this.", before.from, before.to);
    }
    if (text === ")" && !this.open.length) throw this.unexpected(token);
    throw new Mistake(`A number or a name is missing before “${text}”.`, from, to);
  }

  /** @param {Token} token */
  name(token) {
    const { text, from, to } = token;
    if (this.catalogue.functions.has(text)) {
      throw new Mistake(`“${text}” is a function: write ${this.catalogue.usage(text)}.`, from, to);
    }
    this.rejectKeyword(token);
    const value = this.catalogue.constants.get(text);
    return this.add(value === undefined ? { kind: "name", name: text, from, to } : { kind: "number", value, from, to });
  }

  /** @param {Token} open */
  brackets(open) {
    if (this.isSign(")")) throw new Mistake("These brackets are empty.", open.from, this.current.to);
    this.open.push(open);
    const inside = this.sum();
    const { to } = this.close(open);
    // The span of a parenthesised expression includes the parentheses.
    this.steps[inside] = { ...this.steps[inside], from: open.from, to };
    return inside;
  }

  /** @param {Token} open */
  close(open) {
    const { current } = this;
    if (this.isSign(")")) {
      this.open.pop();
      return this.next();
    }
    const later = current.line > open.line && (current.kind === "name" || current.kind === "number");
    if (current.kind === "end" || later) throw new Mistake("This bracket is not closed.", open.from, open.to);
    if (this.isSign("=")) throw new Mistake("“=” names a line and is not allowed inside brackets.", current.from, current.to);
    throw this.unexpected(current);
  }

  /** @param {Token} token the name of the function */
  readCall(token) {
    const { text, from } = token;
    const op = this.catalogue.functions.get(text);
    if (op === undefined) throw this.unknownFunction(token);
    const open = this.next();
    this.open.push(open);
    const args = this.nested(open, () => this.arguments(open));
    const { to } = this.next();
    this.open.pop();
    const { inputs, attrs: names } = this.catalogue.op(op);
    const positional = args.filter(({ name }) => name === null).map(({ step }) => step);
    const attrs = Object.fromEntries(positional.slice(inputs).map((step, k) => [names[k], step]));
    for (const { name, step, at } of args) {
      if (name === null) continue;
      const wrong = !names.includes(name) ? `has no argument “${name}”` : Object.hasOwn(attrs, name) && `got ${name} twice`;
      if (wrong) throw new Mistake(`${text} ${wrong}. Write ${this.catalogue.usage(text)}.`, at.from, at.to);
      attrs[name] = step;
    }
    if (positional.length < inputs || positional.length > inputs + names.length) {
      const numbers = `${inputs} argument${inputs === 1 ? "" : "s"}`;
      const are = `there ${positional.length === 1 ? "is" : "are"} ${positional.length || "none"}`;
      throw new Mistake(`${text} takes ${numbers}, but ${are}. Write ${this.catalogue.usage(text)}.`, from, to);
    }
    return this.add({ kind: "op", op, operands: positional.slice(0, inputs), attrs, from, to });
  }

  /** Parse the arguments of a function, up to its closing parenthesis. @param {Token} open */
  arguments(open) {
    /** @type {{name: string | null, step: number, at: Token}[]} */
    const args = [];
    while (!this.isSign(")")) {
      const at = this.current;
      const isKeyword = at.kind === "name" && this.isSign("=", this.tokens[this.at + 1]);
      if (isKeyword) this.at += 2;
      else if (args.at(-1)?.name) throw new Mistake("A positional argument follows a keyword argument.", at.from, at.to);
      args.push({ name: isKeyword ? at.text : null, step: this.sum(), at });
      if (this.isSign(",")) this.next();
      else if (!this.isSign(")")) this.close(open);
    }
    return args;
  }

  /** @param {Token} token the name of an unknown function */
  unknownFunction({ text, from, to }) {
    const suggestion = this.catalogue.nearest(text);
    const advice = suggestion ? ` Did you mean ${suggestion}?` : ` Write ${text}*(…) for a product.`;
    return new Mistake(`Unknown function “${text}”.${advice}`, from, to);
  }
}
