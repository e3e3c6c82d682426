/** Text about a moment: the chain rule in symbols and numbers, quantities, gradients and their states. */

import { formulaParts } from "../drawing/cards.js";
import { parseMath } from "../base/dom.js";
import { parenthesize, formatBrief, formulaLatex, formulaMathML, formulaText, latexName, latexNumber, roundForDisplay } from "../base/notation.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("../base/types.js").Quantity} Quantity */

const BROADCASTING = new Set(
  "add sub mul div pow maximum minimum atan2 where lerp expand mse_loss l1_loss huber_loss".split(" "),
);

/** Descriptions of operations whose names are abbreviations. */
const OP_DESCRIPTIONS = /** @type {Record<string, string>} */ ({
  add: "a sum",
  sub: "a difference",
  mul: "a product",
  div: "a quotient",
  neg: "the negative",
  pow: "a power",
  log: "the natural logarithm",
  matmul: "a matrix product",
});

/** Return the name of an operation, with a description if it is an abbreviation. @param {string} name */
export const describeOp = (name) => (OP_DESCRIPTIONS[name] ? `${name}, ${OP_DESCRIPTIONS[name]}` : name);

/**
 * Format a scalar, or an array in one line.
 * @param {import("../base/types.js").Quantity | null} quantity @param {typeof formatBrief} [format]
 */
export function formatQuantity(quantity, format = formatBrief) {
  if (quantity == null) return "—";
  if (typeof quantity === "number") return format(quantity);
  if (quantity.size === 1 && quantity.cells?.length === 1) return format(quantity.cells[0]);
  const alarm = `${quantity.nan ? " NaN!" : ""}${quantity.inf ? " Inf!" : ""}`;
  return `${formatShape(quantity.shape)} from ${format(quantity.min)} to ${format(quantity.max)}${alarm}`;
}

/** @param {number[]} shape */
export const formatShape = (shape) => `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;

/**
 * Format the gradient of a node with its state.
 * @param {import("../base/types.js").Gradient} gradient @param {typeof formatBrief} [format]
 */
export function formatGradient(gradient, format = formatBrief) {
  if (gradient.state === "none") return "—";
  if (gradient.state === "blocked") return "blocked";
  const text = formatQuantity(gradient.value, format);
  return gradient.state === "partial" ? `${text} (Σ ${gradient.met} of ${gradient.of})` : text;
}

/** @param {string} above @param {string} below */
export const derivativeText = (above, below) => `∂${above}/∂${below}`;

/**
 * Return the chain rule of a backward event: symbols, numbers, and the sum. For tensors `rule` is the index of the
 * VJP's formula, in which g is the upstream gradient.
 * @param {Session} s @param {import("../base/types.js").Moment} moment
 */
export function chainRule(s, moment) {
  const { graph } = s;
  const { edge, upstream, local, contribution, before, total, of } = moment;
  const [operand, result, root] = [graph.operand[edge], graph.result[edge], s.root].map((node) => graph.title(node));
  const left = `${derivativeText(root, operand)} ${of > 1 ? "+=" : "="} `;
  const isScalar = typeof upstream === "number" && typeof local === "number";
  const index = graph.edgeFormula[edge];
  return {
    operand,
    result,
    root,
    left,
    many: of > 1,
    symbols: result === root ? left.slice(0, -3) : `${left}${derivativeText(root, result)} · ${derivativeText(result, operand)}`,
    numbers: isScalar
      ? `${formatBrief(upstream)} × ${parenthesize(local)} = ${formatQuantity(contribution)}`
      : formatQuantity(contribution),
    sum: of > 1 ? sumText(operand, before, contribution, total) : "",
    rule: local === null ? index : -1,
    where: `, g = ${derivativeText(root, result)}${broadcastText(graph, edge)}`,
  };
}

/**
 * Name the axes over which a gradient is summed, because broadcasting repeated the operand along them.
 * @param {import("../base/types.js").Graph} graph
 * @param {number} edge
 */
function broadcastText(graph, edge) {
  const result = graph.tensors.get(graph.result[edge])?.shape;
  const op = graph.ops[graph.op[graph.result[edge]]].name;
  if (!result || !BROADCASTING.has(op)) return "";
  const operand = graph.tensors.get(graph.operand[edge])?.shape ?? [];
  const skip = result.length - operand.length;
  const axes = [...result.keys()].filter((axis) => axis < skip || operand[axis - skip] < result[axis]);
  if (!axes.length) return "";
  const where = `${axes.length > 1 ? "axes" : "axis"} ${axes.join(", ")}`;
  return `, summed over ${where}, where broadcasting repeated ${graph.title(graph.operand[edge])}`;
}

/**
 * @param {string} name
 * @param {Quantity | null} before
 * @param {Quantity | null} contribution
 * @param {Quantity | null} total
 */
function sumText(name, before, contribution, total) {
  if (typeof contribution !== "number") return `${name}.grad → ${formatQuantity(total)}`;
  const sum = `${before === null ? 0 : formatQuantity(before)} + ${parenthesize(contribution)}`;
  return `${name}.grad: ${sum} → ${formatQuantity(total)}`;
}

/** Return the operands of a node, in order. @param {import("../base/types.js").Graph} graph @param {number} node */
export function operandsOf(graph, node) {
  return [...graph.operand.subarray(graph.start[node], graph.start[node + 1])];
}

/**
 * Return the numbers for a formula's placeholders; null unless all are scalars.
 * @param {Session} s @param {number} node
 */
export function formulaNumbers(s, node) {
  const all = [node, ...operandsOf(s.graph, node)].map((one) => s.playback.value(one));
  return all.every((one) => typeof one === "number") ? all.map(roundForDisplay) : null;
}

/**
 * Return a moment as an equation in LaTeX: in names, and for scalars in numbers.
 * @param {Session} s @param {import("../base/types.js").Moment} moment
 */
export function momentLatex(s, moment) {
  const { graph } = s;
  const { node, edge } = moment;
  const number = (/** @type {Quantity | null} */ q) => (typeof q === "number" ? ` = ${latexNumber(roundForDisplay(q))[0]}` : "");
  const slope = (/** @type {number} */ above, /** @type {number} */ below) =>
    `\\frac{\\partial ${latexName(graph.title(above))}}{\\partial ${latexName(graph.title(below))}}`;
  const filled = (/** @type {number} */ index, /** @type {number} */ at, parts = formulaParts(graph, at)) =>
    formulaLatex(graph.formulas[index], parts);
  if (moment.kind === "forward") {
    const index = graph.nodeFormula[node];
    const numbers = formulaNumbers(s, node);
    const name = `${latexName(graph.title(node))}`;
    if (index < 0) return name + number(moment.value);
    return `${name} = ${filled(index, node)}${numbers ? ` = ${filled(index, node, numbers)}` : ""}${number(moment.value)}`;
  }
  if (edge < 0) return slope(node, node) + number(moment.total);
  const result = graph.result[edge];
  const left = `${slope(s.root, node)} ${moment.of > 1 ? "\\mathrel{+}=" : "="} `;
  const index = graph.edgeFormula[edge];
  if (moment.local === null && index >= 0) return `${left}${filled(index, result)}, \\quad g = ${slope(s.root, result)}`;
  const { upstream, local, contribution } = moment;
  const product = typeof upstream === "number" && local !== null;
  const [upstreamText, localText] = product ? [latexNumber(roundForDisplay(upstream))[0], latexNumber(roundForDisplay(local))[0]] : ["", ""];
  const numbers = product ? ` = ${upstreamText} \\cdot ${local < 0 ? `(${localText})` : localText}` : "";
  return `${left}${slope(s.root, result)} \\cdot ${slope(result, node)}${numbers}${number(contribution)}`;
}

/**
 * Create the element of a formula of the trace, with names or the numbers in `parts`.
 * @param {Session} s
 * @param {number} index
 * @param {number} node
 * @param {(string | number)[]} [parts]
 */
export function formulaElement(s, index, node, parts = formulaParts(s.graph, node)) {
  const template = s.graph.formulas[index];
  return parseMath(formulaMathML(template, parts), formulaText(template, parts));
}
