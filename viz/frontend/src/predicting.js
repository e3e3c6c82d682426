/**
 * Predict mode: before each backward step the reader says what the gradient will be. The number is hidden until then, for
 * the player goes no further than what was answered.
 */

import { diagnose } from "./predict.js";
import { h, setText, show } from "./dom.js";
import { moveTo, setPlaying, tell } from "./session.js";
import { chainRule } from "./wording.js";

/** What is answered next: the position of the next backward event, or -1. @param {any} s */
export function asked(s) {
  const next = s.playback.position + 1;
  return s.limit < Infinity && next <= s.line.last && s.line.kindAt(next) === "edge" ? next : -1;
}

/** Turns the mode on or off. @param {any} s @param {boolean} on */
export function setPredicting(s, on) {
  setPlaying(s, false);
  s.limit = on ? Math.max(s.playback.position, Math.min(s.line.forward + 1, s.line.last)) : Infinity;
  if (on) {
    s.unit = "edge";
    s.score = { right: 0, asked: 0, tries: 0 };
    moveTo(s, s.limit);
  }
  tell(s, "predicting");
}

/** Checks an answer; the step is taken when it is right. @param {any} s @param {number} answer */
export function answerStep(s, answer) {
  const found = diagnose(answer, s.playback);
  s.score.tries += 1;
  if (found.verdict === "right") {
    s.score.right += s.score.tries === 1 ? 1 : 0;
    reveal1(s);
  }
  return found;
}

/** Shows the next number. @param {any} s */
function reveal1(s) {
  s.score.asked += 1;
  s.score.tries = 0;
  s.limit = s.playback.position + 1;
  moveTo(s, s.limit);
}

/** @param {any} s */
export function predicting(s) {
  const question = h("label", { for: "mg-answer" });
  const input = h("input", { id: "mg-answer", inputmode: "decimal", autocomplete: "off", size: 8, placeholder: "a number" });
  const verdict = h("p", { class: "verdict", role: "status" });
  const score = h("span", { class: "dim score" });
  const form = h(
    "form",
    { onsubmit: (/** @type {Event} */ event) => check(event) },
    question,
    input,
    h("button", { class: "main" }, "Check"),
    h("button", { type: "button", onclick: () => giveIn() }, "Show me"),
    score,
  );
  const element = h("div", { class: "predict" }, form, verdict);
  /** @param {Event} event */
  function check(event) {
    event.preventDefault();
    const answer = readNumber(input.value);
    if (answer === null) return setText(verdict, "Type a number, such as −3 or 1/2.");
    const found = answerStep(s, answer);
    verdict.dataset.verdict = found.verdict;
    setText(verdict, found.text);
    if (found.verdict === "right") input.value = "";
    input.select();
  }
  function giveIn() {
    const rule = chainRule(s, s.playback.moment(asked(s)));
    reveal1(s);
    verdict.dataset.verdict = "shown";
    setText(verdict, `${rule.symbols} = ${rule.numbers}${rule.sum ? `; ${rule.sum}` : ""}`);
    input.value = "";
    input.focus();
  }
  return {
    element,
    input,
    update(/** @type {string} */ what) {
      const next = asked(s);
      show(element, s.limit < Infinity);
      show(form, next >= 0);
      if (what === "predicting") setText(verdict, "");
      if (next >= 0) setText(question, questionText(s, next));
      else if (s.limit < Infinity) setText(verdict, endText(s));
      if (s.score) setText(score, s.score.asked ? `${s.score.right} of ${s.score.asked} at the first try` : "");
    },
  };
}

/** @param {any} s */
function endText(s) {
  const { right, asked: all } = s.score;
  return all ? `That was the last one: ${right} of ${all} at the first try.` : "There is no backward step to predict here.";
}

/** @param {any} s @param {number} position */
function questionText(s, position) {
  const moment = s.playback.moment(position);
  const { operand, result, root, many } = chainRule(s, moment);
  const name = `∂${root}/∂${operand}`;
  if (!many) return `Going back from ${result} to ${operand}: what is ${name}?`;
  return `Going back from ${result} to ${operand}, contribution ${moment.met} of ${moment.of}: what does ${operand}.grad become?`;
}

/** A number as people write it: −3, 1/2, 2e-3, ∞; null if it is none. @param {string} text */
export function readNumber(text) {
  const plain = text.trim().replaceAll("−", "-").replace("∞", "Infinity").replace(/^([+-]?)inf$/i, "$1Infinity").replace(",", ".");
  const [above, below, ...more] = plain.split("/");
  if (plain === "" || more.length || below === "") return null;
  const x = Number(above) / (below === undefined ? 1 : Number(below));
  return Number.isNaN(x) && !/^nan$/i.test(plain) ? null : x;
}
