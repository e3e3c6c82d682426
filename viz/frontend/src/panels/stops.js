/** The breakpoints panel: a list, a form to add one, and buttons to go to the previous and next one. */

import { breakpoint, firing, nextStop } from "../model/breakpoints.js";
import { submit, tag } from "../base/dom.js";
import { parseNumber } from "../model/predict.js";
import { moveTo, setPlaying, setStops, tell } from "./session.js";

/** @typedef {import("./session.js").Session} Session */

/** @type {[string, string, string][]} kind, label, example value */
const KINDS_OF_STOP = [
  ["op", "an operation", "mul"],
  ["name", "a name", "w1"],
  ["scope", "a scope", "layer1"],
  ["gradient-above", "|gradient| above", "10"],
  ["not-finite", "a NaN or an infinity", ""],
  ["second-contribution", "a second contribution to one gradient", ""],
];

/** @param {Session} s */
export function stops(s) {
  let [example, said] = [KINDS_OF_STOP[0][2], ""];
  const say = (/** @type {string} */ text) => {
    said = text;
    tell(s, "panel");
  };
  const ask = (/** @type {any} */ { target }) => {
    example = KINDS_OF_STOP[target.selectedIndex][2];
    tell(s, "panel");
  };
  const add = submit((kind, which) => {
    const text = which.value.trim();
    const spec = { kind: kind.value, value: example ? text : null };
    try {
      if (spec.kind === "gradient-above") spec.value = parseNumber(text);
      breakpoint(spec);
    } catch (error) {
      return say(/** @type {Error} */ (error).message);
    }
    setStops(s, [...s.stops, spec]);
    which.value = "";
    say("");
  });
  const go = (/** @type {number} */ way) => {
    setPlaying(s, false);
    const at = nextStop(s.playback, s.stops, way);
    const there = firing(s.playback, s.stops, at).length > 0 && moveTo(s, at);
    say(there ? "" : `No breakpoint ${way > 0 ? "ahead" : "behind"}.`);
  };
  const kinds = KINDS_OF_STOP.map(([value, text]) => tag("option", { value }, text));
  const form = () =>
    tag(
      "form",
      { onsubmit: add },
      "Stop at ",
      tag("select", { label: "Stop at", onchange: ask }, ...kinds),
      tag("input", { label: "Value", size: 10, placeholder: example, hidden: !example }),
      tag("button", {}, "Add"),
    );
  const ways = () =>
    tag(
      "div.acts",
      {},
      tag("button", { onclick: () => go(-1) }, "◂ Previous"),
      tag("button", { onclick: () => go(1) }, "Next breakpoint ▸"),
      tag("span.dim", { role: "status" }, said),
    );
  const item = (/** @type {import("./session.js").Spec} */ spec) => {
    const { text } = breakpoint(spec);
    const remove = () => setStops(s, s.stops.filter((one) => one !== spec));
    const label = `Remove: ${text}`;
    return tag("li", {}, `${text} `, tag("button.quiet", { label, onclick: remove }, "✕"));
  };
  return () =>
    tag("section.panel", { label: "Breakpoints" }, form(), tag("ul.list", {}, ...s.stops.map(item)), ways());
}
