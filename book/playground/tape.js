/**
 * Conversion of a program to the graph that Python would build: names are leaves or earlier lines, constant expressions
 * are folded, and nodes are in tape order, each after its operands.
 */

import { Mistake } from "./tokens.js";

/** @typedef {import("./catalogue.js").Catalogue} Catalogue */
/** @typedef {import("./catalogue.js").Attrs} Attrs */
/** @typedef {import("./parser.js").Program} Program */

/** A span in the source. @typedef {{from: number, to: number}} Span */

/** A constant, which becomes a node when an operation uses it. @typedef {{value: number, span: Span}} Constant */

/**
 * A node: a leaf, an operation or a constant, by the letters of traces. Operands are indices in the tape.
 * @typedef {object} Entry
 * @property {"l" | "o" | "c"} kind
 * @property {string | null} op
 * @property {number[]} operands
 * @property {Attrs} attrs
 * @property {number | null} value of a constant
 * @property {string | null} name
 * @property {Span} span
 */

/**
 * A node under construction, whose inputs are objects.
 * @typedef {Omit<Entry, "operands"> & {inputs: (Made | Constant)[]}} Made
 */

/** `leaves` maps names to spans. @typedef {{entries: Entry[], leaves: Map<string, Span>}} Tape */

/**
 * @param {Program} program @param {Catalogue} catalogue
 * @returns {Tape}
 */
export function tapeOf(program, catalogue) {
  const { root, leaves, named } = run(program, catalogue);
  const order = topological(root);
  /** @type {Entry[]} */
  const entries = [];
  /** @type {Map<Made, number>} */
  const places = new Map();
  for (const made of order) {
    const operands = made.inputs.map((input) => ("kind" in input ? places.get(input) ?? -1 : constant(input)));
    const { inputs, ...rest } = made;
    places.set(made, entries.push({ ...rest, operands }) - 1);
  }
  const reached = [...leaves].filter(([, leaf]) => places.has(leaf));
  nameAll(named, reached, places, entries);
  return { entries, leaves: new Map(reached.map(([name, { span }]) => [name, span])) };

  /** Create a constant node for each use. @param {Constant} input */
  function constant({ value, span }) {
    return entries.push({ kind: "c", op: null, operands: [], attrs: {}, value, name: null, span }) - 1;
  }
}

/** Evaluate the lines. @param {Program} program @param {Catalogue} catalogue */
function run({ steps, lines }, catalogue) {
  /** @type {Map<string, Made>} */
  const leaves = new Map();
  /** @type {Map<string, Made | Constant>} */
  const named = new Map();
  /** @type {(Made | Constant)[]} */
  const things = [];
  let done = 0;
  for (const { name, last } of lines) {
    for (; done <= last; done += 1) things.push(thing(steps[done]));
    if (name !== null) named.set(name, things[last]);
  }
  const { name, last } = lines[lines.length - 1];
  const root = things[last];
  if (!("kind" in root)) {
    const { from, to } = steps[last];
    const why = "The last line has no names, so there is no leaf to change, and no gradient.";
    throw new Mistake(`${why} Replace a number by a letter.`, from, to);
  }
  if (name === null && !leaves.has("y") && !named.has("y")) named.set("y", root);
  return { root, leaves, named };

  /** @param {import("./parser.js").Step} step @returns {Made | Constant} */
  function thing(step) {
    const { from, to } = step;
    const span = { from, to };
    if (step.kind === "number") return { value: step.value, span };
    if (step.kind === "name") {
      const found = named.get(step.name) ?? leaves.get(step.name);
      if (found) return "kind" in found ? found : { ...found, span };
      const leaf = made("l", null, [], {}, step.name, span);
      leaves.set(step.name, leaf);
      return leaf;
    }
    const inputs = step.operands.map((one) => things[one]);
    const attrs = attributes(step, things, steps, catalogue);
    if (inputs.some((input) => "kind" in input)) return made("o", step.op, inputs, attrs, null, span);
    return { value: catalogue.calculate(step.op, inputs.map((one) => Number(one.value)), attrs), span };
  }
}

/**
 * Return all attributes of an operation, which are JavaScript numbers.
 * @param {"l" | "o"} kind @param {string | null} op @param {(Made | Constant)[]} inputs @param {Attrs} attrs
 * @param {string | null} name @param {Span} span
 * @returns {Made}
 */
const made = (kind, op, inputs, attrs, name, span) => ({ kind, op, inputs, attrs, value: null, name, span });

/**
 * All attributes of an operation, which are JavaScript numbers.
 * @param {Extract<import("./parser.js").Step, {kind: "op"}>} step @param {(Made | Constant)[]} things
 * @param {import("./parser.js").Step[]} steps @param {Catalogue} catalogue
 */
function attributes(step, things, steps, catalogue) {
  const { attrs: names, defaults } = catalogue.op(step.op);
  /** @type {Attrs} */
  const attrs = {};
  for (const name of names) {
    const given = Object.hasOwn(step.attrs, name) ? step.attrs[name] : -1;
    const found = given < 0 ? null : things[given];
    if (found && "kind" in found) {
      const { from, to } = steps[given];
      throw new Mistake(`${name} of ${step.op} must be a constant: it gets no gradient.`, from, to);
    }
    attrs[name] = found ? found.value : (defaults[name] ?? null);
  }
  return attrs;
}

/**
 * Sort `root` and everything it was computed from topologically: operands first, in order.
 * @param {Made} root
 */
function topological(root) {
  /** @type {Made[]} */
  const order = [];
  const seen = new Set();
  /** @type {(() => void)[]} */
  const waiting = [];
  const visit = (/** @type {Made} */ one) => {
    if (seen.has(one)) return;
    seen.add(one);
    waiting.push(() => void order.push(one));
    for (const input of [...one.inputs].reverse()) if ("kind" in input) waiting.push(() => visit(input));
  };
  visit(root);
  for (let next = waiting.pop(); next; next = waiting.pop()) next();
  return order;
}

/**
 * Name the nodes: leaves as typed, an operation as the first line that gives it a name still free.
 * @param {Map<string, Made | Constant>} named @param {[string, Made][]} leaves
 * @param {Map<Made, number>} places @param {Entry[]} entries
 */
function nameAll(named, leaves, places, entries) {
  const taken = new Set(leaves.map(([name]) => name));
  for (const [name, one] of named) {
    const place = "kind" in one ? places.get(one) : undefined;
    if (place === undefined || entries[place].name !== null || taken.has(name)) continue;
    entries[place].name = name;
    taken.add(name);
  }
}
