/** The caption of the current moment: a sentence and the formula, also announced to screen readers. */

import { BROKEN } from "../model/trace.js";
import { partsOf } from "../drawing/cards.js";
import { brief, formulaText } from "../base/notation.js";
import { abs } from "../base/math.js";
import { h, tag } from "../base/dom.js";
import { chainRule, formulaElement, momentLatex, numbersFor, opText, quantityText, slope } from "./wording.js";

/** @typedef {import("./session.js").Session} Session */

/** @param {Session} s */
export function saying(s) {
  let said = "";
  return (/** @type {string} */ what) => {
    const moment = s.playback.moment();
    const [text, ...formula] = momentText(s, moment);
    if (what === "moved" || what === "numbers") said = s.stopped + s.playback.sentence();
    return tag(
      "div.say",
      {},
      moment.kind !== "start" &&
        tag("button.quiet.copy", { title: "Copy as LaTeX", onclick: () => copy(momentLatex(s, moment)) }, "LaTeX"),
      tag(
        "div.words",
        { "aria-hidden": true },
        tag("span", { class: `chip ${moment.kind}` }, phase(s, moment.kind)),
        tag("span", {}, s.stopped + text),
      ),
      tag("div.formula", {}, ...formula),
      tag("div.mg-said", { "aria-live": "polite", "aria-atomic": true }, said),
    );
  };
}

/** Copy text to the clipboard, without the Clipboard API, which some pages lack. @param {string} text */
function copy(text) {
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
  if (kind === "forward") return `Forward ${position} of ${s.line.forward}`;
  return kind === "seed" ? "Backward" : `Backward ${position - s.line.seed} of ${s.line.last - s.line.seed}`;
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
    return [graph.how || "The leaves have values; nothing is computed yet.", tag("span.hint", {}, "Press → to compute the first operation.")];
  }
  const name = graph.title(moment.node);
  const less = Number(moment.contribution) < 0;
  const bw = (/** @type {string} */ text) => tag(less ? "span.less" : "span.bw", {}, text);
  if (moment.kind === "forward") return [forwardWords(s, moment), ...forwardFormula(s, moment)];
  if (moment.kind === "seed") {
    return [
      `The backward pass begins at ${name}: a change in ${name} changes ${name} by the same amount.`,
      bw(`∂${name}/∂${name} = ${quantityText(moment.total)}`),
      tag("span.sum.hint", {}, "each arrow multiplies the incoming gradient (upstream) by its derivative (local)"),
    ];
  }
  const rule = chainRule(s, moment);
  const which = rule.many ? `, contribution ${moment.met} of ${moment.of}` : "";
  const op = graph.ops[graph.op[graph.result[moment.edge]]];
  const how = moment.local === null ? `, through ${op.name}` : ": upstream × local";
  const end = s.playback.position === s.line.last ? " The backward pass is complete." : "";
  const words = `From ${rule.result} back to ${rule.operand}${how}${which}.${meaning(rule, moment)}${end}`;
  const sum = rule.sum ? tag("span.sum", {}, rule.sum) : "";
  if (rule.rule < 0) {
    const index = graph.edgeFormula[moment.edge];
    const local = `${slope(rule.result, rule.operand)} = `;
    const given = moment.local === null ? "" : ` = ${quantityText(moment.local)}`;
    const plain = index < 0 || /^[−\d.]+$/.test(formulaText(graph.formulas[index], partsOf(graph, graph.result[moment.edge])));
    const where = !plain && tag("span.sum", {}, "where ", local, formulaElement(s, index, graph.result[moment.edge]), given);
    return [words, `${rule.symbols} = `, bw(rule.numbers), where, sum];
  }
  return [
    `From ${rule.result} back to ${rule.operand}${rule.where}.${end}`,
    rule.left,
    formulaElement(s, rule.rule, graph.result[moment.edge]),
    " = ",
    bw(rule.numbers),
    sum,
  ];
}

/**
 * Explain a gradient that is complete.
 * @param {ReturnType<typeof chainRule>} rule @param {import("../base/types.js").Moment} moment
 */
function meaning({ operand, root }, { met, of, total }) {
  if (met < of || typeof total !== "number" || !total) return "";
  return ` If ${operand} increases slightly, ${root} ${total < 0 ? "decreases" : "increases"} ${brief(abs(total))} times as much.`;
}

/** @param {Session} s @param {import("../base/types.js").Moment} moment */
function forwardWords(s, { node }) {
  const op = s.graph.ops[s.graph.op[node]];
  const end = s.playback.position === s.line.forward && s.line.root >= 0 ? " The forward pass is complete." : "";
  const { computes, kernel } = s.graph.attrs.get(node) ?? {};
  if (s.graph.how) return `${computes ?? op.name}${kernel ? `, by ${kernel}` : ""}.`;
  const what = s.graph.kind[node] === BROKEN ? "raised an error" : `is computed: ${op ? opText(op.name) : "?"}`;
  return `${s.graph.title(node)} ${what}.${end}`;
}

/** @param {Session} s @param {import("../base/types.js").Moment} moment @returns {import("../base/dom.js").Child[]} */
function forwardFormula(s, { node, value }) {
  const index = s.graph.nodeFormula[node];
  const name = `${s.graph.title(node)} = `;
  const numbers = numbersFor(s, node);
  const result = tag("span.fw", {}, quantityText(value));
  if (index < 0) return [name, result];
  const rule = formulaElement(s, index, node);
  return numbers
    ? [name, rule, " = ", formulaElement(s, index, node, numbers), " = ", result]
    : [name, rule, " = ", result];
}
