/**
 * Predict mode: before each backward step the user enters the resulting gradient. The player does not go beyond the
 * last answer, so the number stays hidden.
 */

import { isAskable, diagnose, parseNumber } from "../model/predict.js";
import { onSubmit, tag } from "../base/dom.js";
import { moveTo, setPlaying, notify } from "./session.js";
import { chainRule } from "./momenttext.js";

/** @typedef {import("./session.js").Session} Session */

const NO_VERDICT = { verdict: "", text: "" };

/** Return how far the user may go from a position without a prediction. @param {Session} s @param {number} from */
function lastFreePosition(s, from) {
  let to = from;
  while (to < s.timeline.last && !isAskable(s.playback.moment(to + 1))) to += 1;
  return to;
}

/** Whether there is a question: a backward step with a scalar gradient. @param {Session} s */
export const hasQuestion = (s) => s.timeline.root >= 0 && (!s.graph.tensors.size || lastFreePosition(s, s.timeline.seed) < s.timeline.last);

/** Return the position of the question; -1 if there is none. @param {Session} s */
export const questionPosition = (s) => (s.limit < s.timeline.last ? s.limit + 1 : -1);

/** Turn the mode on or off. @param {Session} s @param {boolean} on */
export function setPredicting(s, on) {
  setPlaying(s, false);
  s.limit = Infinity;
  if (on) {
    const to = lastFreePosition(s, s.playback.position);
    s.stepSize = "edge";
    s.score = { right: 0, asked: 0, tries: 0 };
    s.limit = to;
    if (to < s.timeline.last) moveTo(s, to);
  }
  notify(s, "predicting");
}

/** Diagnose the user's input, which may not be a number. @param {Session} s @param {string} text */
function diagnoseInput(s, text) {
  let answer = NaN;
  try {
    answer = parseNumber(text);
  } catch (error) {
    return { verdict: "unread", text: /** @type {Error} */ (error).message };
  }
  return checkAnswer(s, answer);
}

/** Check an answer; if it is right, take the step. @param {Session} s @param {number} answer */
export function checkAnswer(s, answer) {
  moveTo(s, s.limit);
  const diagnosis = diagnose(answer, s.playback);
  s.score.tries += 1;
  if (diagnosis.verdict === "right") {
    s.score.right += s.score.tries === 1 ? 1 : 0;
    showNext(s);
  }
  return diagnosis;
}

/** Show the next number. @param {Session} s */
function showNext(s) {
  s.score.asked += 1;
  s.score.tries = 0;
  const next = s.limit + 1;
  s.limit = lastFreePosition(s, next);
  moveTo(s, next);
}

/** @param {Session} s */
export function predictPanel(s) {
  let diagnosis = NO_VERDICT;
  const check = onSubmit((input) => {
    diagnosis = diagnoseInput(s, input.value);
    if (diagnosis.verdict === "right") input.value = "";
    input.select();
    notify(s, "panel");
  });
  const showAnswer = (/** @type {any} */ { target }) => {
    const rule = chainRule(s, s.playback.moment(questionPosition(s)));
    diagnosis = { verdict: "shown", text: `${rule.symbols} = ${rule.numbers}${rule.sum ? `; ${rule.sum}` : ""}` };
    const [input] = target.form;
    input.value = "";
    input.focus();
    showNext(s);
  };
  return (/** @type {string} */ change) => {
    const next = questionPosition(s);
    if (change === "predicting") diagnosis = NO_VERDICT;
    return tag(
      "div.predict",
      { hidden: s.limit === Infinity },
      tag(
        "form",
        { onsubmit: check, hidden: next < 0 },
        tag("label", { for: "mg-answer" }, next < 0 ? "" : questionText(s, next)),
        tag("input", { id: "mg-answer", inputmode: "decimal", autocomplete: "off", size: 8, placeholder: "a number" }),
        tag("button.main", {}, "Check"),
        tag("button", { type: "button", onclick: showAnswer }, "Show me"),
        tag("span.dim.score", {}, s.score?.asked > 0 && `${s.score.right} of ${s.score.asked} on the first try`),
      ),
      tag(
        "p.verdict",
        { role: "status", "data-verdict": diagnosis.verdict },
        next < 0 && s.limit < Infinity ? endText(s) : diagnosis.text,
      ),
    );
  };
}

/** @param {Session} s */
function endText(s) {
  const { right, asked: all } = s.score;
  return all
    ? `That was the last one: ${right} of ${all} on the first try.`
    : "No backward step from here has a scalar gradient.";
}

/** @param {Session} s @param {number} position */
function questionText(s, position) {
  const moment = s.playback.moment(position);
  const { operand, result, root, many } = chainRule(s, moment);
  const name = `∂${root}/∂${operand}`;
  if (!many) return `Backward from ${result} to ${operand}: what is ${name}?`;
  const contributionText = `contribution ${moment.met} of ${moment.of}`;
  return `Backward from ${result} to ${operand}, ${contributionText}: what does ${operand}.grad become?`;
}
