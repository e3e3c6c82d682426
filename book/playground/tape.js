/**
 * A program as the graph that Python would have made of it: names are leaves or earlier lines, what has only numbers in
 * it is computed on the spot, and nodes stand in the order of the tape, each after what it was computed from.
 */

import { Mistake } from "./tokens.js";

/** @typedef {import("./catalogue.js").Catalogue} Catalogue */
/** @typedef {import("./catalogue.js").Attrs} Attrs */
/** @typedef {import("./parser.js").Program} Program */

/** Where something stands in the text. @typedef {{from: number, to: number}} Span */

/** A number that is no part of the graph, until an operation takes it. @typedef {{value: number, span: Span}} Constant */

/**
 * A node: a leaf, an operation or a constant, by the letters of traces. Operands are places in the tape.
 * @typedef {object} Entry
 * @property {"l" | "o" | "c"} kind
 * @property {string | null} op
 * @property {number[]} operands
 * @property {Attrs} attrs
 * @property {number | null} value of a constant
 * @property {string | null} name
 * @property {Span} span
 */

/** While the tape is made operands are things. @typedef {Omit<Entry, "operands"> & {inputs: (Made | Constant)[]}} Made */

/** `leaves` by name, with all places where they stand. @typedef {{entries: Entry[], leaves: Map<string, Span>}} Tape */

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

  /** A constant is a node for each use. @param {Constant} input */
  function constant({ value, span }) {
    return entries.push({ kind: "c", op: null, operands: [], attrs: {}, value, name: null, span }) - 1;
  }
}

/** Goes through the lines. @param {Program} program @param {Catalogue} catalogue */
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
    const why = "Nothing in the last line has a name, so there is no number to move, and no gradient.";
    throw new Mistake(`${why} Put a letter in the place of a number.`, from, to);
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
 * @param {"l" | "o"} kind @param {string | null} op @param {(Made | Constant)[]} inputs @param {Attrs} attrs
 * @param {string | null} name @param {Span} span
 * @returns {Made}
 */
const made = (kind, op, inputs, attrs, name, span) => ({ kind, op, inputs, attrs, value: null, name, span });

/**
 * All attributes of an operation, which are plain numbers.
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
      throw new Mistake(`${name} of ${step.op} has to be a plain number: no gradient goes to it.`, from, to);
    }
    attrs[name] = found ? found.value : (defaults[name] ?? null);
  }
  return attrs;
}

/**
 * What `root` was computed from, and itself: each after its operands, the first operand first.
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
 * Leaves are called as they were typed, and an operation as the first line that gave it a name still free.
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
