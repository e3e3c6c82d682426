/** The breakpoints panel: a list, a form to add one, and buttons to go to the previous and next one. */

import { breakpoint, firingBreakpoints, nextStop } from "../model/breakpoints.js";
import { onSubmit, tag } from "../base/dom.js";
import { parseNumber } from "../model/predict.js";
import { moveTo, setPlaying, setBreakpoints, notify } from "./session.js";

/** @typedef {import("./session.js").Session} Session */

/** @type {[string, string, string][]} kind, label, example value */
const BREAKPOINT_KINDS = [
  ["op", "an operation", "mul"],
  ["name", "a name", "w1"],
  ["scope", "a scope", "layer1"],
  ["gradient-above", "|gradient| above", "10"],
  ["not-finite", "a NaN or an infinity", ""],
  ["second-contribution", "a second contribution to one gradient", ""],
];

/** @param {Session} s */
export function breakpointsPanel(s) {
  let [example, message] = [BREAKPOINT_KINDS[0][2], ""];
  const showMessage = (/** @type {string} */ text) => {
    message = text;
    notify(s, "panel");
  };
  const onKindChange = (/** @type {any} */ { target }) => {
    example = BREAKPOINT_KINDS[target.selectedIndex][2];
    notify(s, "panel");
  };
  const add = onSubmit((kind, input) => {
    const text = input.value.trim();
    const spec = { kind: kind.value, value: example ? text : null };
    try {
      if (spec.kind === "gradient-above") spec.value = parseNumber(text);
      breakpoint(spec);
    } catch (error) {
      return showMessage(/** @type {Error} */ (error).message);
    }
    setBreakpoints(s, [...s.breakpoints, spec]);
    input.value = "";
    showMessage("");
  });
  const goToBreakpoint = (/** @type {number} */ direction) => {
    setPlaying(s, false);
    const at = nextStop(s.playback, s.breakpoints, direction);
    const hasMoved = firingBreakpoints(s.playback, s.breakpoints, at).length > 0 && moveTo(s, at);
    showMessage(hasMoved ? "" : `No breakpoint ${direction > 0 ? "ahead" : "behind"}.`);
  };
  const kinds = BREAKPOINT_KINDS.map(([value, text]) => tag("option", { value }, text));
  const form = () =>
    tag(
      "form",
      { onsubmit: add },
      "Stop at ",
      tag("select", { label: "Stop at", onchange: onKindChange }, ...kinds),
      tag("input", { label: "Value", size: 10, placeholder: example, hidden: !example }),
      tag("button", {}, "Add"),
    );
  const navigation = () =>
    tag(
      "div.acts",
      {},
      tag("button", { onclick: () => goToBreakpoint(-1) }, "◂ Previous"),
      tag("button", { onclick: () => goToBreakpoint(1) }, "Next breakpoint ▸"),
      tag("span.dim", { role: "status" }, message),
    );
  const item = (/** @type {import("./session.js").Spec} */ spec) => {
    const { text } = breakpoint(spec);
    const remove = () => setBreakpoints(s, s.breakpoints.filter((one) => one !== spec));
    const label = `Remove: ${text}`;
    return tag("li", {}, `${text} `, tag("button.quiet", { label, onclick: remove }, "✕"));
  };
  return () =>
    tag("section.panel", { label: "Breakpoints" }, form(), tag("ul.list", {}, ...s.breakpoints.map(item)), navigation());
}
