/** The sentence of the present moment, in words and numbers with the formula; read aloud by screen readers. */

import { h, refill, setText } from "./dom.js";
import { chainRule, formulaElement, numbersFor, quantityText } from "./wording.js";

/** @param {any} s */
export function saying(s) {
  const chip = h("span", { class: "chip" });
  const words = h("span", {});
  const formula = h("div", { class: "formula" });
  const live = h("div", { class: "aria", "aria-live": "polite", "aria-atomic": "true" });
  const element = h(
    "div",
    { class: "say" },
    h("div", { class: "words", "aria-hidden": "true" }, chip, words),
    formula,
    live,
  );
  return {
    element,
    update(/** @type {string} */ what) {
      if (what === "selected" || what === "expanded" || what === "options") return;
      const moment = s.playback.moment();
      chip.className = `chip ${moment.kind}`;
      setText(chip, phase(s, moment.kind));
      const [text, ...parts] = momentText(s, moment);
      setText(words, s.stopped + text);
      refill(formula, ...parts);
      const said = s.stopped + s.playback.sentence();
      if (what === "moved" || what === "numbers") setText(live, said);
    },
  };
}

/** @param {any} s @param {string} kind */
function phase(s, kind) {
  const { position } = s.playback;
  if (kind === "start") return "Start";
  if (kind === "forward") return `Forward ${position} of ${s.line.forward}`;
  return kind === "seed" ? "Backward" : `Backward ${position - s.line.seed} of ${s.line.last - s.line.seed}`;
}

/**
 * A line of words, and what stands below.
 * @param {any} s
 * @param {any} moment
 * @returns {[string, ...(Node | string)[]]}
 */
function momentText(s, moment) {
  const { graph } = s;
  if (moment.kind === "start") return ["The leaves have their numbers; nothing is computed yet.", "→ computes the first operation."];
  const name = graph.title(moment.node);
  const bw = (/** @type {string} */ text) => h("span", { class: "bw" }, text);
  if (moment.kind === "forward") return [forwardWords(s, moment), ...forwardFormula(s, moment)];
  if (moment.kind === "seed") {
    return [
      `The backward pass begins at ${name}: a change of ${name} is a change of ${name}, one to one.`,
      bw(`∂${name}/∂${name} = ${quantityText(moment.total)}`),
    ];
  }
  const rule = chainRule(s, moment);
  const which = rule.many ? `, contribution ${moment.met} of ${moment.of}` : "";
  const op = graph.ops[graph.op[graph.result[moment.edge]]];
  const how = moment.local === null ? `, through ${op.name}` : ": upstream × local";
  const words = `From ${rule.result} back to ${rule.operand}${how}${which}.`;
  const sum = rule.sum ? h("span", { class: "sum" }, rule.sum) : "";
  if (rule.rule < 0) return [words, `${rule.symbols} = `, bw(rule.numbers), sum];
  return [
    `From ${rule.result} back to ${rule.operand}${rule.where}.`,
    rule.left,
    formulaElement(s, rule.rule, graph.result[moment.edge]),
    " = ",
    bw(rule.numbers),
    sum,
  ];
}

/** @param {any} s @param {any} moment */
function forwardWords(s, { node }) {
  const op = s.graph.ops[s.graph.op[node]];
  const end = s.playback.position === s.line.forward && s.line.root >= 0 ? " The forward pass is complete." : "";
  return `${s.graph.title(node)} is computed: ${op?.name ?? "?"}.${end}`;
}

/** @param {any} s @param {any} moment @returns {(Node | string)[]} */
function forwardFormula(s, { node, value }) {
  const index = s.graph.nodeFormula[node];
  const name = `${s.graph.title(node)} = `;
  const numbers = numbersFor(s, node);
  const result = h("span", { class: "fw" }, quantityText(value));
  if (index < 0) return [name, result];
  const rule = formulaElement(s, index, node);
  return numbers
    ? [name, rule, " = ", formulaElement(s, index, node, numbers), " = ", result]
    : [name, rule, " = ", result];
}
