/** The legend of lines and colours, in one row below the drawing. */

import { edgeStrokes } from "../drawing/appearance.js";
import { formatBrief } from "../base/notation.js";
import { memoize, tag } from "../base/dom.js";

/** @typedef {import("./session.js").Session} Session */

/**
 * Create a symbol with its description.
 * @param {string} className @param {string} d @param {string} label @param {number} [width]
 */
const symbol = (className, d, label, width = 26) =>
  tag("span", {}, tag("svg", { class: className, width, height: 10, "aria-hidden": true }, tag("path", { d })), label);

const SQUARE = "M0 0h10v10H0z";

/** Create the description of the numbers on arrows. @param {Session} s */
const localSymbol = (s) =>
  s.graph.tensors.size === 0 && tag("span.local", {}, tag("span.bw", {}, "1.0"), " on an arrow: local derivative");

/** @param {Session} s */
export function legend(s) {
  const largest = memoize(() => edgeStrokes(s.playback).most);
  return () => {
    const peak = largest(s.playback.numbers, s.timeline);
    return tag(
      "div.legend",
      { hidden: s.timeline.root < 0 },
      localSymbol(s),
      symbol("wedge", "M0 4.5L26 2.5v5L0 5.5z", `gradient magnitude on an edge, 0 to ${formatBrief(peak)}`),
      symbol("positive", "M0 2.5h26v5H0z", "positive"),
      symbol("negative", "M0 2.5h26v5H0z", "negative"),
      (s.graph.tensors.size > 0 || s.graph.blocks.length > 1) && symbol("mixed", "M0 2.5h26v5H0z", "both"),
      s.graph.tensors.size > 0 && symbol("plus", SQUARE, "cell above 0", 10),
      s.graph.tensors.size > 0 && symbol("minus", SQUARE, "below 0", 10),
      s.graph.notes.length > 0 && symbol("alarmed", "M0 0h18v10H0zM2 2v6h14V2z", "alarm", 18),
    );
  };
}
