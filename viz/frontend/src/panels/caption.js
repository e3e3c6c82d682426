/** The caption of the current moment: a sentence and the formula, also announced to screen readers. */

import { BROKEN } from "../model/trace.js";
import { formulaParts } from "../drawing/cards.js";
import { formatBrief, formulaText } from "../base/notation.js";
import { abs } from "../base/math.js";
import { h, tag } from "../base/dom.js";
import { chainRule, formulaElement, momentLatex, formulaNumbers, describeOp, formatQuantity, derivativeText } from "./momenttext.js";

/** @typedef {import("./session.js").Session} Session */

/** @param {Session} s */
export function captionPanel(s) {
  let announcement = "";
  return (/** @type {string} */ change) => {
    const moment = s.playback.moment();
    const [text, ...formula] = momentText(s, moment);
    if (change === "moved" || change === "numbers") announcement = s.stopMessage + s.playback.sentence();
    return tag(
      "div.say",
      {},
      moment.kind !== "start" &&
        tag("button.quiet.copy", { title: "Copy as LaTeX", onclick: () => copyText(momentLatex(s, moment)) }, "LaTeX"),
      tag(
        "div.words",
        { "aria-hidden": true },
        tag("span", { class: `chip ${moment.kind}` }, phase(s, moment.kind)),
        tag("span", {}, s.stopMessage + text),
      ),
      tag("div.formula", {}, ...formula),
      tag("div.mg-said", { "aria-live": "polite", "aria-atomic": true }, announcement),
    );
  };
}

/** Copy text to the clipboard, without the Clipboard API, which some pages lack. @param {string} text */
function copyText(text) {
  const field = h("textarea", { value: text });
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** @param {Session} s @param {string} kind */
function phase(s, kind) {
  const { position } = s.playback;
  if (kind === "start") return "Start";
  if (kind === "forward") return `Forward ${position} of ${s.timeline.forward}`;
  return kind === "seed" ? "Backward" : `Backward ${position - s.timeline.seed} of ${s.timeline.last - s.timeline.seed}`;
}

/**
 * Return a sentence, and the formula below it.
 * @param {Session} s
 * @param {import("../base/types.js").Moment} moment
 * @returns {[string, ...import("../base/dom.js").Child[]]}
 */
function momentText(s, moment) {
  const { graph } = s;
  if (moment.kind === "start") {
    return [graph.runMode || "The leaves have values; nothing is computed yet.", tag("span.hint", {}, "Press → to compute the first operation.")];
  }
  const name = graph.title(moment.node);
  const isNegative = Number(moment.contribution) < 0;
  const coloured = (/** @type {string} */ text) => tag(isNegative ? "span.less" : "span.bw", {}, text);
  if (moment.kind === "forward") return [forwardWords(s, moment), ...forwardFormula(s, moment)];
  if (moment.kind === "seed") {
    return [
      `The backward pass begins at ${name}: a change in ${name} changes ${name} by the same amount.`,
      coloured(`∂${name}/∂${name} = ${formatQuantity(moment.total)}`),
      tag("span.sum.hint", {}, "each arrow multiplies the incoming gradient (upstream) by its derivative (local)"),
    ];
  }
  const rule = chainRule(s, moment);
  const contributionText = rule.many ? `, contribution ${moment.met} of ${moment.of}` : "";
  const op = graph.ops[graph.op[graph.result[moment.edge]]];
  const ruleText = moment.local === null ? `, through ${op.name}` : ": upstream × local";
  const end = s.playback.position === s.timeline.last ? " The backward pass is complete." : "";
  const words = `From ${rule.result} back to ${rule.operand}${ruleText}${contributionText}.${gradientMeaning(rule, moment)}${end}`;
  const sum = rule.sum ? tag("span.sum", {}, rule.sum) : "";
  if (rule.rule < 0) {
    const index = graph.edgeFormula[moment.edge];
    const local = `${derivativeText(rule.result, rule.operand)} = `;
    const value = moment.local === null ? "" : ` = ${formatQuantity(moment.local)}`;
    const isTrivial = index < 0 || /^[−\d.]+$/.test(formulaText(graph.formulas[index], formulaParts(graph, graph.result[moment.edge])));
    const where = !isTrivial && tag("span.sum", {}, "where ", local, formulaElement(s, index, graph.result[moment.edge]), value);
    return [words, `${rule.symbols} = `, coloured(rule.numbers), where, sum];
  }
  return [
    `From ${rule.result} back to ${rule.operand}${rule.where}.${end}`,
    rule.left,
    formulaElement(s, rule.rule, graph.result[moment.edge]),
    " = ",
    coloured(rule.numbers),
    sum,
  ];
}

/**
 * Explain a gradient that is complete.
 * @param {ReturnType<typeof chainRule>} rule @param {import("../base/types.js").Moment} moment
 */
function gradientMeaning({ operand, root }, { met, of, total }) {
  if (met < of || typeof total !== "number" || !total) return "";
  return ` If ${operand} increases slightly, ${root} ${total < 0 ? "decreases" : "increases"} ${formatBrief(abs(total))} times as much.`;
}

/** @param {Session} s @param {import("../base/types.js").Moment} moment */
function forwardWords(s, { node }) {
  const op = s.graph.ops[s.graph.op[node]];
  const end = s.playback.position === s.timeline.forward && s.timeline.root >= 0 ? " The forward pass is complete." : "";
  const { computes, kernel } = s.graph.attrs.get(node) ?? {};
  if (s.graph.runMode) return `${computes ?? op.name}${kernel ? `, by ${kernel}` : ""}.`;
  const description = s.graph.kind[node] === BROKEN ? "raised an error" : `is computed: ${op ? describeOp(op.name) : "?"}`;
  return `${s.graph.title(node)} ${description}.${end}`;
}

/** @param {Session} s @param {import("../base/types.js").Moment} moment @returns {import("../base/dom.js").Child[]} */
function forwardFormula(s, { node, value }) {
  const index = s.graph.nodeFormula[node];
  const name = `${s.graph.title(node)} = `;
  const numbers = formulaNumbers(s, node);
  const result = tag("span.fw", {}, formatQuantity(value));
  if (index < 0) return [name, result];
  const rule = formulaElement(s, index, node);
  return numbers
    ? [name, rule, " = ", formulaElement(s, index, node, numbers), " = ", result]
    : [name, rule, " = ", result];
}
