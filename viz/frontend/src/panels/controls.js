/**
 * The one row of transport: first, back, play, forward, last, the scrubber with its phases and stops, the step, the
 * speed.
 */

import { h, icon, setText, show } from "./dom.js";
import { lastPosition, moveTo, setPlaying, stepBy, stopPositions, tell } from "./session.js";

const ICONS = {
  first: "M2 3h2v10H2zM14 3v10L5 8z",
  back: "M11 3v10L4 8zM12 3h1.5v10H12z",
  play: "M4 2.5v11l9-5.5z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  forward: "M5 3v10l7-5zM2.5 3H4v10H2.5z",
  last: "M12 3h2v10h-2zM2 3v10l9-5z",
};
const SPEEDS = [0.25, 0.5, 1, 2, 4];

/** @param {keyof typeof ICONS} name @param {string} label @param {() => void} act */
function key(name, label, act) {
  return h("button", { class: `key ${name}`, "aria-label": label, title: label, onclick: act }, icon(ICONS[name]));
}

/** @param {any} s @param {() => void} help */
export function controls(s, help) {
  const first = key("first", "First (Home)", () => moveTo(s, 0));
  const back = key("back", "Step back (←)", () => stepBy(s, -1));
  const play = key("play", "Play (Space)", () => setPlaying(s, !s.playing));
  const forward = key("forward", "Step forward (→)", () => stepBy(s, 1));
  const last = key("last", "Last (End)", () => moveTo(s, lastPosition(s)));
  const scrub = h("input", { type: "range", class: "scrub", min: 0, step: 1, "aria-label": "Position" });
  scrub.addEventListener("input", () => moveTo(s, scrub.valueAsNumber));
  const marks = h("div", { class: "marks", "aria-hidden": "true" });
  const count = h("span", { class: "count" });
  const units = unitSwitch(s);
  const speed = speedChoice(s);
  const row = [first, back, play, forward, last];
  const element = h(
    "div",
    { class: "transport", role: "toolbar", "aria-label": "Steps" },
    h("div", { class: "keys" }, ...row),
    h("div", { class: "track" }, scrub, marks, count),
    units.element,
    speed,
    h("button", { class: "quiet", "aria-label": "Help: keys (?)", title: "Keys (?)", onclick: help }, "?"),
  );
  return {
    element,
    play,
    scrub,
    /** @param {string} what */
    update(what) {
      const { position } = s.playback;
      const end = lastPosition(s);
      if (["stops", "numbers", "pass"].includes(what)) drawTrack(s, scrub, marks, end);
      scrub.value = String(position);
      scrub.setAttribute("aria-valuetext", `${position} of ${end}`);
      setText(count, `${position} / ${end}`);
      for (const one of [first, back]) disable(one, position === 0);
      for (const one of [forward, last]) disable(one, position === end);
      if (what === "playing" || what === "options") drawPlaying(play, s.playing);
      if (what === "options") speed.value = String(s.speed);
      units.update();
    },
  };
}

/**
 * A disabled button would lose the focus, so it only says that it is.
 * @param {HTMLElement} button
 * @param {boolean} off
 */
function disable(button, off) {
  if ((button.getAttribute("aria-disabled") === "true") !== off) button.setAttribute("aria-disabled", String(off));
}

/** @param {HTMLElement} play @param {boolean} playing */
function drawPlaying(play, playing) {
  const label = playing ? "Pause (Space)" : "Play (Space)";
  play.setAttribute("aria-label", label);
  play.title = label;
  play.replaceChildren(icon(playing ? ICONS.pause : ICONS.play));
}

/** @param {any} s @param {HTMLInputElement} scrub @param {HTMLElement} marks @param {number} end */
function drawTrack(s, scrub, marks, end) {
  scrub.max = String(end);
  const share = (/** @type {number} */ position) => (end ? (100 * position) / end : 0);
  scrub.style.setProperty("--split", `${share(s.line.forward)}%`);
  const phase = (/** @type {string} */ text, /** @type {number} */ from, /** @type {number} */ to) =>
    to > from &&
    h("span", { class: `phase ${text}`, style: `left:${share(from)}%;width:${share(to) - share(from)}%` }, text);
  const stops = stopPositions(s).map((/** @type {number} */ at) =>
    h("i", { class: "tick", style: `left:${share(at)}%` }),
  );
  marks.replaceChildren(
    ...[phase("forward", 0, s.line.forward), phase("backward", s.line.forward, end), ...stops].filter((one) => one),
  );
}

/** Two buttons of which one is pressed: arrows stay free for steps. @param {any} s */
function unitSwitch(s) {
  const buttons = ["edge", "op"].map((unit) =>
    h(
      "button",
      {
        title: unit === "edge" ? "One edge a step" : "One operation a step, with all its edges",
        onclick: () => {
          s.unit = unit;
          tell(s, "options");
        },
      },
      unit,
    ),
  );
  const element = h("div", { class: "switch", role: "group", "aria-label": "A step is" }, ...buttons);
  const update = () => {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(s.unit === ["edge", "op"][i])));
  };
  return { element, update };
}

/** @param {any} s */
function speedChoice(s) {
  const choices = SPEEDS.map((x) => h("option", { value: x, selected: x === s.speed }, `${x}×`));
  const choice = h("select", { class: "speed", "aria-label": "Speed", title: "Speed" }, ...choices);
  choice.addEventListener("change", () => {
    s.speed = Number(choice.value);
    tell(s, "options");
  });
  return choice;
}

/**
 * Which output the backward pass starts from; shown where there are several.
 * @param {any} s
 * @param {(pass: number) => void} choose
 */
export function passChoice(s, choose) {
  const { runs } = s.base;
  const choices = runs.map((/** @type {any} */ run, /** @type {number} */ i) =>
    h("option", { value: i }, s.graph.title(run.root)),
  );
  const choice = h("select", { "aria-label": "Output", onchange: () => choose(Number(choice.value)) }, ...choices);
  const element = h("label", { class: "pass" }, "of ", choice);
  show(element, runs.length > 1);
  return element;
}
