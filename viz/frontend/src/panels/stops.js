/** Breakpoints: where playing stops. A list, a form for one more, and the way to the next stop in either direction. */

import { breakpoint, firing, nextStop } from "../model/breakpoints.js";
import { h, refill, setText, show } from "./dom.js";
import { parseNumber } from "../model/predict.js";
import { moveTo, setPlaying, setStops } from "./session.js";

/** @type {[string, string, string][]} kind, what to call it, an example of what to ask for */
const KINDS_OF_STOP = [
  ["op", "an operation", "mul"],
  ["name", "a name", "w1"],
  ["scope", "a scope", "layer1"],
  ["gradient-above", "|gradient| above", "10"],
  ["not-finite", "a NaN or an infinity", ""],
  ["second-contribution", "a second contribution to one gradient", ""],
];

/** @param {any} s */
export function stops(s) {
  const kind = h(
    "select",
    { "aria-label": "Stop at" },
    ...KINDS_OF_STOP.map(([value, text]) => h("option", { value }, text)),
  );
  const value = h("input", { "aria-label": "Which", size: 10 });
  const said = h("span", { class: "dim", role: "status" });
  const list = h("ul", { class: "list" });
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = value.value.trim();
    /** @type {any} */
    const spec = { kind: kind.value, value: value.hidden ? null : text };
    try {
      if (spec.kind === "gradient-above") spec.value = parseNumber(text);
      breakpoint(spec);
    } catch (error) {
      return setText(said, /** @type {Error} */ (error).message);
    }
    setText(said, "");
    setStops(s, [...s.stops, spec]);
    value.value = "";
  };
  const ask = () => {
    const example = KINDS_OF_STOP.find((one) => one[0] === kind.value)?.[2] ?? "";
    show(value, example !== "");
    value.placeholder = example;
  };
  kind.addEventListener("change", ask);
  ask();
  const go = (/** @type {number} */ way) => {
    setPlaying(s, false);
    const at = nextStop(s.playback, s.stops, way);
    const there = firing(s.playback, s.stops, at).length > 0 && moveTo(s, at);
    setText(said, there ? "" : `No stop ${way > 0 ? "ahead" : "behind"}.`);
  };
  const element = h(
    "section",
    { class: "panel", "aria-label": "Stops" },
    h("form", { onsubmit: add }, "Stop at ", kind, value, h("button", {}, "Add")),
    list,
    h(
      "div",
      { class: "acts" },
      h("button", { onclick: () => go(-1) }, "◂ To the stop before"),
      h("button", { onclick: () => go(1) }, "To the next stop ▸"),
      said,
    ),
  );
  return {
    element,
    update(/** @type {string} */ what) {
      if (what === "moved" || what === "selected") return;
      refill(list, ...s.stops.map((/** @type {any} */ spec, /** @type {number} */ i) => stopItem(s, spec, i)));
    },
  };
}

/** @param {any} s @param {any} spec @param {number} i */
function stopItem(s, spec, i) {
  const remove = () =>
    setStops(
      s,
      s.stops.filter((/** @type {any} */ one) => one !== spec),
    );
  const text = breakpoint(spec).text;
  return h(
    "li",
    {},
    text,
    " ",
    h("button", { class: "quiet", "data-key": `x${i}`, "aria-label": `Remove: ${text}`, onclick: remove }, "✕"),
  );
}
