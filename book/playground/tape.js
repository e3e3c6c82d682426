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
 * @typedef {Omit<Entry, "operands"> & {inputs: (TapeNode | Constant)[]}} TapeNode
 */

/** `leaves` maps names to spans. @typedef {{entries: Entry[], leaves: Map<string, Span>}} Tape */

/**
 * @param {Program} program @param {Catalogue} catalogue
 * @returns {Tape}
 */
export function buildTape(program, catalogue) {
  const { root, leaves, named } = evaluate(program, catalogue);
  const order = topological(root);
  /** @type {Entry[]} */
  const entries = [];
  /** @type {Map<TapeNode, number>} */
  const indices = new Map();
  for (const made of order) {
    const operands = made.inputs.map((input) => ("kind" in input ? indices.get(input) ?? -1 : constant(input)));
    const { inputs, ...rest } = made;
    indices.set(made, entries.push({ ...rest, operands }) - 1);
  }
  const reached = [...leaves].filter(([, leaf]) => indices.has(leaf));
  assignNames(named, reached, indices, entries);
  return { entries, leaves: new Map(reached.map(([name, { span }]) => [name, span])) };

  /** Create a constant node for each use. @param {Constant} input */
  function constant({ value, span }) {
    return entries.push({ kind: "c", op: null, operands: [], attrs: {}, value, name: null, span }) - 1;
  }
}

/** Evaluate the lines. @param {Program} program @param {Catalogue} catalogue */
function evaluate({ steps, lines }, catalogue) {
  /** @type {Map<string, TapeNode>} */
  const leaves = new Map();
  /** @type {Map<string, TapeNode | Constant>} */
  const named = new Map();
  /** @type {(TapeNode | Constant)[]} */
  const objects = [];
  let done = 0;
  for (const { name, last } of lines) {
    for (; done <= last; done += 1) objects.push(evaluateStep(steps[done]));
    if (name !== null) named.set(name, objects[last]);
  }
  const { name, last } = lines[lines.length - 1];
  const root = objects[last];
  if (!("kind" in root)) {
    const { from, to } = steps[last];
    const message = "The last line has no names, so there is no leaf to change, and no gradient.";
    throw new Mistake(`${message} Replace a number by a letter.`, from, to);
  }
  if (name === null && !leaves.has("y") && !named.has("y")) named.set("y", root);
  return { root, leaves, named };

  /** @param {import("./parser.js").Step} step @returns {TapeNode | Constant} */
  function evaluateStep(step) {
    const { from, to } = step;
    const span = { from, to };
    if (step.kind === "number") return { value: step.value, span };
    if (step.kind === "name") {
      const found = named.get(step.name) ?? leaves.get(step.name);
      if (found) return "kind" in found ? found : { ...found, span };
      const leaf = createNode("l", null, [], {}, step.name, span);
      leaves.set(step.name, leaf);
      return leaf;
    }
    const inputs = step.operands.map((one) => objects[one]);
    const attrs = attributes(step, objects, steps, catalogue);
    if (inputs.some((input) => "kind" in input)) return createNode("o", step.op, inputs, attrs, null, span);
    return { value: catalogue.calculate(step.op, inputs.map((one) => Number(one.value)), attrs), span };
  }
}

/**
 * Return all attributes of an operation, which are JavaScript numbers.
 * @param {"l" | "o"} kind @param {string | null} op @param {(TapeNode | Constant)[]} inputs @param {Attrs} attrs
 * @param {string | null} name @param {Span} span
 * @returns {TapeNode}
 */
const createNode = (kind, op, inputs, attrs, name, span) => ({ kind, op, inputs, attrs, value: null, name, span });

/**
 * All attributes of an operation, which are JavaScript numbers.
 * @param {Extract<import("./parser.js").Step, {kind: "op"}>} step @param {(TapeNode | Constant)[]} things
 * @param {import("./parser.js").Step[]} steps @param {Catalogue} catalogue
 */
function attributes(step, things, steps, catalogue) {
  const { attrs: names, defaults } = catalogue.op(step.op);
  /** @type {Attrs} */
  const attrs = {};
  for (const name of names) {
    const stepIndex = Object.hasOwn(step.attrs, name) ? step.attrs[name] : -1;
    const operand = stepIndex < 0 ? null : things[stepIndex];
    if (operand && "kind" in operand) {
      const { from, to } = steps[stepIndex];
      throw new Mistake(`${name} of ${step.op} must be a constant: it gets no gradient.`, from, to);
    }
    attrs[name] = operand ? operand.value : (defaults[name] ?? null);
  }
  return attrs;
}

/**
 * Sort `root` and everything it was computed from topologically: operands first, in order.
 * @param {TapeNode} root
 */
function topological(root) {
  /** @type {TapeNode[]} */
  const order = [];
  const visited = new Set();
  /** @type {(() => void)[]} */
  const stack = [];
  const visit = (/** @type {TapeNode} */ one) => {
    if (visited.has(one)) return;
    visited.add(one);
    stack.push(() => void order.push(one));
    for (const input of [...one.inputs].reverse()) if ("kind" in input) stack.push(() => visit(input));
  };
  visit(root);
  for (let next = stack.pop(); next; next = stack.pop()) next();
  return order;
}

/**
 * Name the nodes: leaves as typed, an operation as the first line that gives it a name still free.
 * @param {Map<string, TapeNode | Constant>} named @param {[string, TapeNode][]} leaves
 * @param {Map<TapeNode, number>} places @param {Entry[]} entries
 */
function assignNames(named, leaves, places, entries) {
  const usedNames = new Set(leaves.map(([name]) => name));
  for (const [name, one] of named) {
    const index = "kind" in one ? places.get(one) : undefined;
    if (index === undefined || entries[index].name !== null || usedNames.has(name)) continue;
    entries[index].name = name;
    usedNames.add(name);
  }
}
