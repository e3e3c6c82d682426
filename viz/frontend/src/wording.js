/** What is said about a moment: the chain rule in symbols and with its numbers, quantities, gradients and their states. */

import { formulaMathML, formulaText, pretty } from "./notation.js";

/** @param {number} x */
export const bracketed = (x) => (x < 0 || Object.is(x, -0) ? `(${pretty(x)})` : pretty(x));

/** A number, or an array in one line. @param {any} q */
export function quantityText(q) {
  if (q == null) return "—";
  if (typeof q === "number") return pretty(q);
  if (q.size === 1 && q.cells?.length === 1) return pretty(q.cells[0]);
  const alarm = `${q.nan ? " NaN!" : ""}${q.inf ? " Inf!" : ""}`;
  return `${shapeInWords(q.shape)} from ${pretty(q.min)} to ${pretty(q.max)}${alarm}`;
}

/** @param {number[]} shape */
export const shapeInWords = (shape) => `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;

/** The gradient of a node with its state, in words. @param {any} gradient */
export function gradientText(gradient) {
  if (gradient.state === "none") return "—";
  if (gradient.state === "blocked") return "blocked";
  const text = quantityText(gradient.value);
  return gradient.state === "partial" ? `${text} (Σ ${gradient.met} of ${gradient.of})` : text;
}

/** @param {string} above @param {string} below */
const slope = (above, below) => `∂${above}/∂${below}`;

/**
 * The chain rule of one backward event: symbols, numbers, and the sum it goes into.
 * @param {any} s @param {any} moment
 */
export function chainRule(s, moment) {
  const { graph } = s;
  const operand = graph.title(graph.operand[moment.edge]);
  const result = graph.title(graph.result[moment.edge]);
  const root = graph.title(s.root);
  const { of } = s.playback.gradient(graph.operand[moment.edge]);
  const left = `${slope(root, operand)} ${of > 1 ? "+=" : "="} `;
  const { upstream, local, contribution, before, total } = moment;
  const numeric = typeof upstream === "number" && typeof local === "number";
  return {
    operand,
    result,
    root,
    many: of > 1,
    symbols: `${left}${slope(root, result)} · ${slope(result, operand)}`,
    numbers: numeric
      ? `${pretty(upstream)} × ${bracketed(local)} = ${quantityText(contribution)}`
      : quantityText(contribution),
    sum: of > 1 ? sumSentence(operand, before, contribution, total) : "",
  };
}

/** @param {string} name @param {any} before @param {any} contribution @param {any} total */
function sumSentence(name, before, contribution, total) {
  if (typeof contribution !== "number") return `${name}.grad → ${quantityText(total)}`;
  if (before === null || before === undefined) return `${name}.grad: 0 + ${bracketed(contribution)} → ${pretty(total)}`;
  return `${name}.grad: ${pretty(before)} + ${bracketed(contribution)} → ${pretty(total)}`;
}

/** The operands of a node, in order. @param {any} graph @param {number} node @returns {number[]} */
export function operandsOf(graph, node) {
  return [...graph.operand.subarray(graph.start[node], graph.start[node + 1])];
}

/** Numbers for a formula's places; null if one is not a number. @param {any} s @param {number} node */
export function numbersFor(s, node) {
  const all = [node, ...operandsOf(s.graph, node)].map((one) => s.playback.value(one));
  return all.every((one) => typeof one === "number") ? all : null;
}

/** A formula of the trace filled in. @param {any} s @param {number} index @param {(string | number)[] | null} parts */
export function filledText(s, index, parts) {
  return index < 0 || parts === null ? "" : formulaText(s.graph.formulas[index], parts);
}

/** The same as MathML text. @param {any} s @param {number} index @param {(string | number)[] | null} parts */
export function filledMath(s, index, parts) {
  return index < 0 || parts === null ? "" : formulaMathML(s.graph.formulas[index], parts);
}
