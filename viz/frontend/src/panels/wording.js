/** Text about a moment: the chain rule in symbols and numbers, quantities, gradients and their states. */

import { partsOf } from "../drawing/cards.js";
import { math } from "../base/dom.js";
import { bracketed, brief, formulaLatex, formulaMathML, formulaText, latexName, latexNumber, shortened } from "../base/notation.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("../base/types.js").Quantity} Quantity */

const BROADCASTING = new Set(
  "add sub mul div pow maximum minimum atan2 where lerp expand mse_loss l1_loss huber_loss".split(" "),
);

/** Descriptions of operations whose names are abbreviations. */
const WORDS = /** @type {Record<string, string>} */ ({
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
export const opText = (name) => (WORDS[name] ? `${name}, ${WORDS[name]}` : name);

/**
 * Format a scalar, or an array in one line.
 * @param {import("../base/types.js").Quantity | null} q @param {typeof brief} [show]
 */
export function quantityText(q, show = brief) {
  if (q == null) return "—";
  if (typeof q === "number") return show(q);
  if (q.size === 1 && q.cells?.length === 1) return show(q.cells[0]);
  const alarm = `${q.nan ? " NaN!" : ""}${q.inf ? " Inf!" : ""}`;
  return `${shapeInWords(q.shape)} from ${show(q.min)} to ${show(q.max)}${alarm}`;
}

/** @param {number[]} shape */
export const shapeInWords = (shape) => `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;

/**
 * Format the gradient of a node with its state.
 * @param {import("../base/types.js").Gradient} gradient @param {typeof brief} [show]
 */
export function gradientText(gradient, show = brief) {
  if (gradient.state === "none") return "—";
  if (gradient.state === "blocked") return "blocked";
  const text = quantityText(gradient.value, show);
  return gradient.state === "partial" ? `${text} (Σ ${gradient.met} of ${gradient.of})` : text;
}

/** @param {string} above @param {string} below */
export const slope = (above, below) => `∂${above}/∂${below}`;

/**
 * Return the chain rule of a backward event: symbols, numbers, and the sum. For tensors `rule` is the index of the
 * VJP's formula, in which g is the upstream gradient.
 * @param {Session} s @param {import("../base/types.js").Moment} moment
 */
export function chainRule(s, moment) {
  const { graph } = s;
  const { edge, upstream, local, contribution, before, total, of } = moment;
  const [operand, result, root] = [graph.operand[edge], graph.result[edge], s.root].map((node) => graph.title(node));
  const left = `${slope(root, operand)} ${of > 1 ? "+=" : "="} `;
  const numeric = typeof upstream === "number" && typeof local === "number";
  const index = graph.edgeFormula[edge];
  return {
    operand,
    result,
    root,
    left,
    many: of > 1,
    symbols: result === root ? left.slice(0, -3) : `${left}${slope(root, result)} · ${slope(result, operand)}`,
    numbers: numeric
      ? `${brief(upstream)} × ${bracketed(local)} = ${quantityText(contribution)}`
      : quantityText(contribution),
    sum: of > 1 ? sumSentence(operand, before, contribution, total) : "",
    rule: local === null ? index : -1,
    where: `, g = ${slope(root, result)}${summedText(graph, edge)}`,
  };
}

/**
 * Name the axes over which a gradient is summed, because broadcasting repeated the operand along them.
 * @param {import("../base/types.js").Graph} graph
 * @param {number} edge
 */
function summedText(graph, edge) {
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
function sumSentence(name, before, contribution, total) {
  if (typeof contribution !== "number") return `${name}.grad → ${quantityText(total)}`;
  const sum = `${before === null ? 0 : quantityText(before)} + ${bracketed(contribution)}`;
  return `${name}.grad: ${sum} → ${quantityText(total)}`;
}

/** Return the operands of a node, in order. @param {import("../base/types.js").Graph} graph @param {number} node */
export function operandsOf(graph, node) {
  return [...graph.operand.subarray(graph.start[node], graph.start[node + 1])];
}

/**
 * Return the numbers for a formula's placeholders; null unless all are scalars.
 * @param {Session} s @param {number} node
 */
export function numbersFor(s, node) {
  const all = [node, ...operandsOf(s.graph, node)].map((one) => s.playback.value(one));
  return all.every((one) => typeof one === "number") ? all.map(shortened) : null;
}

/**
 * Return a moment as an equation in LaTeX: in names, and for scalars in numbers.
 * @param {Session} s @param {import("../base/types.js").Moment} moment
 */
export function momentLatex(s, moment) {
  const { graph } = s;
  const { node, edge } = moment;
  const number = (/** @type {Quantity | null} */ q) => (typeof q === "number" ? ` = ${latexNumber(shortened(q))[0]}` : "");
  const slope = (/** @type {number} */ above, /** @type {number} */ below) =>
    `\\frac{\\partial ${latexName(graph.title(above))}}{\\partial ${latexName(graph.title(below))}}`;
  const filled = (/** @type {number} */ index, /** @type {number} */ at, parts = partsOf(graph, at)) =>
    formulaLatex(graph.formulas[index], parts);
  if (moment.kind === "forward") {
    const index = graph.nodeFormula[node];
    const numbers = numbersFor(s, node);
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
  const [up, down] = product ? [latexNumber(shortened(upstream))[0], latexNumber(shortened(local))[0]] : ["", ""];
  const numbers = product ? ` = ${up} \\cdot ${local < 0 ? `(${down})` : down}` : "";
  return `${left}${slope(s.root, result)} \\cdot ${slope(result, node)}${numbers}${number(contribution)}`;
}

/**
 * Create the element of a formula of the trace, with names or the numbers in `parts`.
 * @param {Session} s
 * @param {number} index
 * @param {number} node
 * @param {(string | number)[]} [parts]
 */
export function formulaElement(s, index, node, parts = partsOf(s.graph, node)) {
  const template = s.graph.formulas[index];
  return math(formulaMathML(template, parts), formulaText(template, parts));
}
