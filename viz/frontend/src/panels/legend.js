/** The legend of lines and colours, in one row below the drawing. */

import { strokesOf } from "../drawing/looks.js";
import { brief } from "../base/notation.js";
import { remember, tag } from "../base/dom.js";

/** @typedef {import("./session.js").Session} Session */

/**
 * Create a symbol with its description.
 * @param {string} look @param {string} d @param {string} words @param {number} [width]
 */
const mark = (look, d, words, width = 26) =>
  tag("span", {}, tag("svg", { class: look, width, height: 10, "aria-hidden": true }, tag("path", { d })), words);

const SQUARE = "M0 0h10v10H0z";

/** Create the description of the numbers on arrows. @param {Session} s */
const localMark = (s) =>
  s.graph.tensors.size === 0 && tag("span.local", {}, tag("span.bw", {}, "1.0"), " on an arrow: local derivative");

/** @param {Session} s */
export function legend(s) {
  const most = remember(() => strokesOf(s.playback).most);
  return () => {
    const peak = most(s.playback.numbers, s.line);
    return tag(
      "div.legend",
      { hidden: s.line.root < 0 },
      localMark(s),
      mark("wedge", "M0 4.5L26 2.5v5L0 5.5z", `gradient magnitude on an edge, 0 to ${brief(peak)}`),
      mark("positive", "M0 2.5h26v5H0z", "positive"),
      mark("negative", "M0 2.5h26v5H0z", "negative"),
      (s.graph.tensors.size > 0 || s.graph.blocks.length > 1) && mark("mixed", "M0 2.5h26v5H0z", "both"),
      s.graph.tensors.size > 0 && mark("plus", SQUARE, "cell above 0", 10),
      s.graph.tensors.size > 0 && mark("minus", SQUARE, "below 0", 10),
      s.graph.notes.length > 0 && mark("alarmed", "M0 0h18v10H0zM2 2v6h14V2z", "alarm", 18),
    );
  };
}
