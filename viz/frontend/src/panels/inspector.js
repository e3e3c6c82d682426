/** The inspector, below the drawing: details of the selected node or block, or of the node of each step. */

import { formulaLine } from "../drawing/cards.js";
import { tag } from "../base/dom.js";
import { activeNode, getEngine, moveTo, offerElement, select } from "./session.js";
import { selectedBlock, selectedNode, setExpanded, setPlaying, setBreakpoints } from "./session.js";
import { tensorScales } from "../drawing/heatcolour.js";
import { heatmap, linkOperands } from "../drawing/heatmap.js";
import { ancestorsOf, toggle } from "../model/blocks.js";
import { runToPosition } from "../model/breakpoints.js";
import { BROKEN } from "../model/trace.js";
import { elementKey, isEditable } from "../engine/keys.js";
import { formatPretty } from "../base/notation.js";
import { formulaElement, formatGradient, formulaNumbers, describeOp, operandsOf, formatQuantity } from "./momenttext.js";

/** @typedef {import("./session.js").Session} Session */

const KINDS = ["leaf: input or parameter", "operation", "constant", "raised an error"];
/** The selection that follows the node of each step. */
const FOLLOW_STEPS = "step";
const NOT_COMPUTED = "not computed yet";

/** @param {Session} s */
export function inspector(s) {
  let last = -2;
  return () => {
    const block = selectedBlock(s);
    const node = inspectedNode(s);
    if (node !== last) s.pictures = new Map();
    last = node;
    const [title, kind, ...facts] =
      block >= 0
        ? [s.graph.blocks[block].name, ...blockFacts(s, block)]
        : node >= 0
          ? [s.graph.title(node), ...nodeFacts(s, node)]
          : ["", tag("p.dim", {}, "Nothing computed yet: press →.")];
    const buttons = tag(
      "div.acts",
      { hidden: node < 0 || block >= 0 },
      tag("button", { onclick: () => runToNode(s) }, "Run to here"),
      tag("button", { "aria-pressed": s.breakpoints.some(isBreakpointOn(s, node)), onclick: () => toggleNodeBreakpoint(s) }, "Stop here"),
    );
    const isFollowing = s.selected === FOLLOW_STEPS;
    const [follow, close] = [() => select(s, FOLLOW_STEPS), () => select(s, null)];
    return tag(
      "div.inspector",
      { role: "group", label: "Inspector" },
      // no heading element: the page around may use any level
      tag(
        "header",
        {},
        ...[tag("strong.title", {}, title), kind, buttons],
        tag("button.quiet", { "aria-pressed": isFollowing, onclick: follow }, "Follow the steps"),
        tag("button.quiet", { label: "Close", title: "Close (Esc)", onclick: close }, "✕"),
      ),
      tag("div.facts", {}, ...facts),
    );
  };
}

/** @param {Session} s */
export const inspectedNode = (s) => (selectedNode(s) < 0 ? activeNode(s) : selectedNode(s));

/** @param {Session} s */
function runToNode(s) {
  setPlaying(s, false);
  moveTo(s, runToPosition(s.playback, inspectedNode(s)));
}

/** Whether a breakpoint is on a node. @param {Session} s @param {number} node */
const isBreakpointOn = (s, node) => (/** @type {import("./session.js").Spec} */ stop) =>
  node >= 0 && stop.kind === "name" && stop.value === s.graph.title(node, Infinity);

/** Set or remove a breakpoint on the inspected node. @param {Session} s */
export function toggleNodeBreakpoint(s) {
  const node = inspectedNode(s);
  if (node < 0) return;
  const matches = isBreakpointOn(s, node);
  if (s.breakpoints.some(matches)) setBreakpoints(s, s.breakpoints.filter((stop) => !matches(stop)));
  else setBreakpoints(s, [...s.breakpoints, { kind: "name", value: s.graph.title(node, Infinity) }]);
}

/** Create a row: a term and its description. @param {string} term @param {...import("../base/dom.js").Child} facts */
const row = (term, ...facts) => tag("div.row", {}, tag("dt", {}, term), tag("dd", {}, ...facts));

/** Create a link to a node. @param {Session} s @param {number} node */
const nodeLink = (s, node) =>
  tag("button.link", { onclick: () => select(s, `n${node}`) }, s.graph.title(node));

/** Create links to the first `maxLinks` nodes. @param {Session} s @param {number[]} nodes @param {number} maxLinks */
export const nodeLinks = (s, nodes, maxLinks) => [
  ...nodes.slice(0, maxLinks).flatMap((node) => [nodeLink(s, node), " "]),
  nodes.length > maxLinks && `and ${nodes.length - maxLinks} more`,
];

/** @param {Session} s @param {number} node */
function nodeFacts(s, node) {
  const { graph, playback } = s;
  const op = graph.op[node] >= 0 ? graph.ops[graph.op[node]] : null;
  const gradient = playback.gradient(node);
  const tensor = graph.tensors.get(node);
  const isKnown = playback.isComputed(node);
  const value = isKnown ? playback.value(node) : null;
  const unknown = graph.kind[node] === BROKEN ? KINDS[BROKEN] : NOT_COMPUTED;
  const whatIfReason = s.overrides.size ? getEngine(s).why(node) : null;
  const attrs = Object.entries(graph.attrs.get(node) ?? {}).map(([key, text]) => `${key} = ${text}`);
  const heatmaps = createHeatmaps(s, node, value, gradient.value);
  const notes = graph.notes.filter((note) => note.node === node);
  return [
    tag(
      "p.dim.kind",
      {},
      op ? describeOp(op.name) : KINDS[graph.kind[node]],
      tensor ? ` · ${tensor.dtype} (${tensor.shape.join(", ")})` : "",
    ),
    ...notes.map((note) => tag("p.alarm", {}, `! ${note.text}`)),
    tag(
      "dl",
      {},
      row(
        "value",
        tag("span.fw", {}, isKnown ? formatQuantity(value, formatPretty) : unknown),
        heatmaps.value?.element,
      ),
      row(
        "gradient",
        tag("span.bw", {}, formatGradient(gradient, formatPretty)),
        tag("small", {}, ` ${stateText(gradient)}`),
        heatmaps.grad?.element,
      ),
      op && row("formula", formulaRow(s, graph.nodeFormula[node], node)),
      attrs.length > 0 && row("args", attrs.join(", ")),
      ...linkRows(s, node),
      ...heatmaps.operands.map((one, i) => one && row(graph.title(operandsOf(graph, node)[i]), one.element)),
      graph.lines.has(node) && row("line", tag("code", {}, graph.lines.get(node))),
      graph.block[node] > 0 && row("scope", ...scopeLinks(s, graph.block[node])),
      whatIfReason !== null && row("what if", whatIfReason),
    ),
  ];
}

/** @param {import("../base/types.js").Gradient} gradient */
function stateText(gradient) {
  if (gradient.state === "none") return NOT_COMPUTED;
  if (gradient.state === "blocked") return "gets no gradient";
  return gradient.state === "final" && gradient.of > 1 ? `final, Σ of ${gradient.of}` : gradient.state;
}

/**
 * Return the heatmap of an array, reused between steps.
 * @param {Session} s @param {import("../base/types.js").Quantity | null} quantity @param {string} label
 * @param {Parameters<typeof heatmap>[1]} [options]
 */
function cachedHeatmap(s, quantity, label, options) {
  if (quantity === null || typeof quantity === "number" || quantity.size < 2) return null;
  let cached = s.pictures.get(label);
  if (cached?.cells !== quantity) s.pictures.set(label, (cached = { cells: quantity, ...heatmap(quantity, { label, ...options }) }));
  return cached;
}

/**
 * Create the heatmaps of a tensor's value, gradient and operands; hovering over a cell frames the operand cells it came
 * from.
 * @param {Session} s
 * @param {number} node
 * @param {import("../base/types.js").Quantity | null} value
 * @param {import("../base/types.js").Quantity | null} grad
 */
function createHeatmaps(s, node, value, grad) {
  const { graph } = s;
  const scales = (s.scales ??= tensorScales(graph));
  const name = graph.title(node);
  const operandNodes = operandsOf(graph, node);
  const operands = operandNodes.map((one, i) =>
    cachedHeatmap(s, s.playback.value(one), `operand ${i + 1}, ${graph.title(one)}`, { size: 120, scale: scales.get(one) }),
  );
  const shapes = {
    operands: operandNodes.map((one) => graph.tensors.get(one)?.shape ?? []),
    result: graph.tensors.get(node)?.shape ?? [],
  };
  const op = graph.ops[graph.op[node]];
  const pickCell = isEditable(graph, node)
    ? (/** @type {number} */ cell) => offerElement(s, elementKey(graph, node, cell))
    : undefined;
  const scale = scales.get(node);
  const hover = op && linkOperands(op, graph.attrs.get(node) ?? {}, shapes, operands);
  return {
    value: cachedHeatmap(s, value, `value of ${name}`, { size: 240, scale, hover, pick: pickCell }),
    grad: cachedHeatmap(s, grad, `gradient of ${name}`, { size: 240, scale }),
    operands,
  };
}

/**
 * Create a formula in symbols, and below with its numbers.
 * @param {Session} s @param {number} index @param {number} node
 */
function formulaRow(s, index, node) {
  if (index < 0) return tag("span", {}, formulaLine(s.graph, node));
  const numbers = formulaNumbers(s, node);
  return tag(
    "div.formula",
    {},
    tag("div", {}, `${s.graph.title(node)} = `, formulaElement(s, index, node)),
    numbers &&
      tag("div.fw", {}, "= ", formulaElement(s, index, node, numbers), ` = ${formatQuantity(numbers[0])}`),
  );
}

/** Create the rows of a node's inputs and consumers. @param {Session} s @param {number} node */
function linkRows(s, node) {
  const uses = [...s.graph.outgoing(node)].map((edge) => s.graph.result[edge]);
  return [
    ["inputs", operandsOf(s.graph, node)],
    ["used in", uses],
  ].map(([term, all]) => {
    const nodes = [...new Set(/** @type {number[]} */ (all))];
    return nodes.length > 0 && row(String(term), ...nodeLinks(s, nodes, 8));
  });
}

/**
 * Create links to the scopes around a block, outermost first; each opens and closes its scope.
 * @param {Session} s @param {number} block
 */
function scopeLinks(s, block) {
  const path = ancestorsOf(s.graph, block).reverse();
  return path.flatMap((at, i) => [i ? " › " : "", blockLink(s, at)]);
}

/** @param {Session} s @param {number} block */
function blockLink(s, block) {
  const open = s.expanded.has(block);
  return tag(
    "button",
    {
      class: "link",
      "aria-expanded": open,
      title: open ? "Collapse" : "Expand",
      onclick: () => toggleBlock(s, block),
    },
    `${s.graph.blocks[block].name}${open ? " −" : " +"}`,
  );
}

/**
 * Open or close a block; if a selected node gets hidden, the block is selected instead.
 * @param {Session} s
 * @param {number} block
 */
export function toggleBlock(s, block) {
  setExpanded(s, toggle(s.graph, s.expanded, block));
  if (s.expanded.has(block)) return;
  const node = selectedNode(s);
  if (ancestorsOf(s.graph, s.graph.block[node]).includes(block)) select(s, `b${block}`);
}

/** @param {Session} s @param {number} block */
function blockFacts(s, block) {
  const { name, count, kind, about, outer } = s.graph.blocks[block];
  const inside = s.graph.block.reduce(
    (/** @type {number} */ sum, /** @type {number} */ at) => sum + Number(at === block),
    0,
  );
  return [
    tag(
      "p.dim.kind",
      {},
      kind === "fold" ? `${count} repeated blocks, folded` : kind === "run" ? "a section of the graph" : "scope",
    ),
    tag(
      "dl",
      {},
      inside > 0 && row("nodes", String(inside)),
      about && row("about", about),
      outer > 0 && row("scope", ...scopeLinks(s, outer)),
      row("", blockLink(s, block)),
    ),
    tag("p.dim", {}, `E opens and closes ${name}.`),
  ];
}
