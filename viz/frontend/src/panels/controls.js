/**
 * The transport bar: first, back, play, forward, last, the scrubber with its phases and breakpoints, the step size, the
 * speed, and the output where the backward pass starts.
 */

import { icon, memoize, tag } from "../base/dom.js";
import { choosePass, moveTo, setOptions, setPlaying, stepBy, breakpointPositions } from "./session.js";

/** @typedef {import("./session.js").Session} Session */

const ICONS = {
  first: icon("M2 3h2v10H2zM14 3v10L5 8z"),
  back: icon("M11 3v10L4 8zM12 3h1.5v10H12z"),
  play: icon("M4 2.5v11l9-5.5z"),
  pause: icon("M4 3h3v10H4zM9 3h3v10H9z"),
  forward: icon("M5 3v10l7-5zM2.5 3H4v10H2.5z"),
  last: icon("M12 3h2v10h-2zM2 3v10l9-5z"),
};
const SPEEDS = [0.25, 0.5, 1, 2, 4].map((x) => tag("option", { value: x }, `${x}×`));
/** @type {[import("../base/types.js").StepSize, string][]} */
const STEP_SIZES = [
  ["edge", "One edge per step"],
  ["op", "One operation per step, with all its edges"],
];

/**
 * Create an icon button. It uses `aria-disabled`, because a disabled button would lose the focus.
 * @param {keyof typeof ICONS} name @param {string} label @param {() => void} act
 * @param {boolean} [isDisabled] @param {import("../base/dom.js").Tag} [picture]
 */
const iconButton = (name, label, act, isDisabled, picture = ICONS[name]) =>
  tag(
    "button",
    { class: `key ${name}`, label, title: label, "aria-disabled": isDisabled, onclick: act },
    picture,
  );

/** @param {Session} s @param {() => void} help */
export function controls(s, help) {
  const ticks = memoize(() => breakpointPositions(s));
  return () => {
    const { position } = s.playback;
    const { last } = s.timeline;
    const [start, end] = [position === 0, position === last];
    const [word, picture] = s.playing ? ["Pause", ICONS.pause] : ["Play", ICONS.play];
    return tag(
      "div.transport",
      { role: "toolbar", label: "Steps" },
      tag(
        "div.keys",
        {},
        iconButton("first", "First (Home)", () => moveTo(s, 0), start),
        iconButton("back", "Step back (←)", () => stepBy(s, -1), start),
        iconButton("play", `${word} (Space)`, () => setPlaying(s, !s.playing), undefined, picture),
        iconButton("forward", "Step forward (→)", () => stepBy(s, 1), end),
        iconButton("last", "Last (End)", () => moveTo(s, last), end),
      ),
      scrubber(s, ticks(s.breakpoints, s.playback.numbers, s.timeline)),
      tag("div.switch", { role: "group", label: "Step size" }, ...STEP_SIZES.map(([unit, title]) =>
        tag("button", { title, "aria-pressed": s.stepSize === unit, onclick: () => setOptions(s, s.speed, unit) }, unit),
      )),
      dropdown("Speed", SPEEDS, s.speed, (speed) => setOptions(s, speed, s.stepSize)),
      tag("button.quiet", { label: "Help: shortcuts (?)", title: "Shortcuts (?)", onclick: help }, "?"),
      outputChoice(s),
    );
  };
}

/** Create the scrubber: its phases, its breakpoints, and the position. @param {Session} s @param {number[]} ticks */
function scrubber(s, ticks) {
  const { position } = s.playback;
  const { last, forward } = s.timeline;
  const percent = (/** @type {number} */ part) => `${last ? (100 * part) / last : 0}%`;
  const phase = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) =>
    to > from && tag("span", { class: `phase ${name}`, style: `left:${percent(from)};width:${percent(to - from)}` }, name);
  return tag(
    "div.track",
    {},
    tag("input", {
      type: "range",
      class: "scrub",
      min: 0,
      max: last,
      step: 1,
      value: position,
      style: `--split:${percent(forward)}`,
      label: "Position",
      "aria-valuetext": `${position} of ${last}`,
      oninput: (event) => moveTo(s, event.target.valueAsNumber),
    }),
    tag(
      "div.marks",
      { "aria-hidden": true },
      phase("forward", 0, forward),
      phase("backward", forward, last),
      ...ticks.map((at) => tag("i.tick", { style: `left:${percent(at)}` })),
    ),
    tag("span.count", {}, `${position} / ${last}`),
  );
}

/**
 * Create a drop-down list of numbers.
 * @param {string} label @param {import("../base/dom.js").Tag[]} options @param {number} value
 * @param {(value: number) => void} choose
 */
const dropdown = (label, options, value, choose) =>
  tag(
    "select",
    { class: label.toLowerCase(), label, title: label, value, onchange: ({ target }) => choose(+target.value) },
    ...options,
  );

/** Create the choice of the output where the backward pass starts, if there are several. @param {Session} s */
function outputChoice(s) {
  const { runs } = s.recorded;
  const outputs = runs.map(({ root }, value) => tag("option", { value }, s.graph.title(root)));
  return runs.length > 1 && tag("label", {}, "Output ", dropdown("Output", outputs, s.pass, (pass) => choosePass(s, pass)));
}
