/** Breakpoints: where playing stops. A list, a form for one more, and the way to the next stop in either direction. */

import { nextStop } from "./breakpoints.js";
import { h, refill, setText, show } from "./dom.js";
import { moveTo, setPlaying, setStops } from "./session.js";

/** @type {[string, string, string][]} kind, what to call it, what to ask for */
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
  const kind = h("select", { "aria-label": "Stop at" }, ...KINDS_OF_STOP.map(([value, text]) => h("option", { value }, text)));
  const value = h("input", { "aria-label": "Which", size: 10 });
  const said = h("span", { class: "dim", role: "status" });
  const list = h("ul", { class: "list" });
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    const spec = stopSpec(kind.value, value.value.trim());
    setText(said, spec ? "" : "Say which one.");
    if (spec) setStops(s, [...s.stops, spec]);
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
    setText(said, at < 0 || !moveTo(s, at) ? `No stop ${way > 0 ? "ahead" : "behind"}.` : "");
  };
  const element = h(
    "section",
    { class: "panel", "aria-label": "Stops" },
    h("form", { onsubmit: add }, "Stop at ", kind, value, h("button", {}, "Add")),
    list,
    h("div", { class: "acts" }, h("button", { onclick: () => go(-1) }, "◂ To the stop before"), h("button", { onclick: () => go(1) }, "To the next stop ▸"), said),
  );
  return {
    element,
    update(/** @type {string} */ what) {
      if (what === "moved" || what === "selected") return;
      refill(list, ...s.stops.map((/** @type {any} */ spec, /** @type {number} */ i) => stopItem(s, spec, i)));
    },
  };
}

/** What the form says as a breakpoint; null if something is missing. @param {string} kind @param {string} text */
export function stopSpec(kind, text) {
  if (kind === "not-finite" || kind === "second-contribution") return { kind, value: null };
  if (text === "") return null;
  if (kind !== "gradient-above") return { kind, value: text };
  const number = Number(text);
  return Number.isNaN(number) ? null : { kind, value: number };
}

/** @param {{kind: string, value: string | number | null}} spec */
export function stopText(spec) {
  const name = KINDS_OF_STOP.find((one) => one[0] === spec.kind)?.[1] ?? spec.kind;
  return spec.value === null ? name : `${name}: ${spec.value}`;
}

/** @param {any} s @param {any} spec @param {number} i */
function stopItem(s, spec, i) {
  const remove = () => setStops(s, s.stops.filter((/** @type {any} */ one) => one !== spec));
  const text = stopText(spec);
  return h("li", {}, text, " ", h("button", { class: "quiet", "data-key": `x${i}`, "aria-label": `Remove: ${text}`, onclick: remove }, "✕"));
}
