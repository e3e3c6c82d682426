/**
 * What if a leaf held another number? Sliders recompute the graph forward and backward. Beside them the output is drawn
 * over the leaf, with the tangent that the gradient promises and a slope measured by finite differences.
 */

import { drawn, h, refill, setText, show } from "./dom.js";
import { pretty } from "../engine/notation.js";
import { engineOf, override, pick, recompute, selectedNode } from "./session.js";
import { elementKey, isFree, keyNamed, keyTitle, leafOf, numberAt } from "../engine/keys.js";

const SHOWN = 12;
const PLOT = { width: 300, height: 170 };

/** The leaves that hold one number, as keys of `overrides`. @param {any} s @returns {number[]} */
export function scalarLeaves({ graph }) {
  const all = [];
  for (let node = 0; node < graph.count; node++) {
    const shape = graph.tensors.get(node)?.shape;
    const one = !shape || shape.every((/** @type {number} */ size) => size === 1);
    if (one && graph.kind[node] === 0 && isFree(graph, node)) all.push(shape ? elementKey(graph, node, 0) : node);
  }
  return all;
}

/**
 * Round ends around a number, for its slider.
 * @param {number} x
 * @returns {[number, number, number]} least, most, step
 */
export function sliderRange(x) {
  const reach = Number.isFinite(x) ? Math.max(2, 2 * Math.abs(x)) : 2;
  const unit = 10 ** Math.floor(Math.log10(reach));
  const wide = Math.ceil(reach / unit) * unit;
  const middle = Number.isFinite(x) ? Math.round(x / unit) * unit : 0;
  const tidy = (/** @type {number} */ number) => Number(number.toPrecision(12));
  return [tidy(middle - wide), tidy(middle + wide), tidy(unit / 50)];
}

/** @param {any} s */
export function whatIf(s) {
  const leaves = scalarLeaves(s);
  /** @type {Map<number, any>} */
  const made = new Map();
  let current = leaves[0] ?? -1;
  const list = h("div", { class: "sliders" });
  const plot = h("figure", { class: "plot" });
  const reset = h("button", { onclick: () => (s.overrides.clear(), recompute(s)) }, "Reset all");
  const more = h("p", { class: "dim" });
  const field = elementField(s);
  const element = h(
    "section",
    { class: "panel whatif", "aria-label": "What if" },
    h("div", {}, list, field?.element, more, reset),
    plot,
  );
  /** @param {number} leaf @param {number | null} value */
  const change = (leaf, value) => {
    current = leaf;
    if (value === null || Number.isFinite(value)) override(s, leaf, value);
  };
  return {
    element,
    update(/** @type {string} */ what) {
      if (what === "moved" || what === "playing") return;
      const chosen = selectedNode(s);
      const mine = [...leaves, ...s.picked].filter((key) => leafOf(s.graph, key) === chosen);
      if (what === "selected" && mine.length) current = mine[mine.length - 1];
      if (what === "picked" || current < 0) current = s.picked[s.picked.length - 1] ?? current;
      field?.suggest(chosen);
      const all = [...leaves.slice(0, SHOWN), ...s.picked, ...s.overrides.keys(), current];
      const shown = [...new Set(all)].filter((key) => key >= 0);
      for (const leaf of shown) if (!made.has(leaf)) made.set(leaf, slider(s, leaf, change));
      if (list.childElementCount !== shown.length) refill(list, ...shown.map((leaf) => made.get(leaf).element));
      for (const leaf of shown) made.get(leaf).update(leaf === current);
      const rest = leaves.filter((leaf) => !shown.includes(leaf)).length;
      setText(more, rest ? `${rest} more: choose one in the drawing.` : noteOf(s, leaves, shown));
      show(reset, s.overrides.size > 0);
      refill(plot, ...(current < 0 ? [] : plotOf(s, current)));
      if (what === "picked") made.get(current).focus();
    },
  };
}

/** What a reader should know of it. @param {any} s @param {number[]} leaves @param {number[]} shown */
function noteOf(s, leaves, shown) {
  if (!s.graph.tensors.size) return leaves.length ? "" : "This graph has no leaf that holds one number.";
  if (!shown.length) return "Choose a leaf, and click an element in its picture or name it here.";
  return "What carries no gradient, as a comparison or what was detached, keeps its numbers.";
}

/** Where an element is named, in a graph of tensors. @param {any} s */
function elementField(s) {
  const { graph } = s;
  const free = [...graph.tensors.keys()].filter((node) => isFree(graph, node) && graph.tensors.get(node).shape.length);
  if (!free.length) return null;
  const input = h("input", { size: 12, "aria-label": "Element to change", spellcheck: "false" });
  const says = h("span", { class: "alarm", role: "status" });
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    const key = keyNamed(graph, input.value.trim());
    setText(says, key < 0 ? "There is no such element." : "");
    if (key >= 0) pick(s, key);
  };
  let last = -1;
  return {
    element: h("form", { class: "acts", onsubmit: add }, input, h("button", {}, "Add element"), says),
    /** @param {number} node */
    suggest(node) {
      const leaf = free.includes(node) ? node : last < 0 ? free[0] : last;
      if (leaf !== last) input.value = keyTitle(graph, elementKey(graph, leaf, 0), graph.names[leaf] ?? undefined);
      last = leaf;
    },
  };
}

/** @param {any} s @param {number} leaf @param {(leaf: number, value: number | null) => void} change */
function slider(s, leaf, change) {
  const name = keyTitle(s.graph, leaf);
  const value = numberAt(s.graph, s.base, leaf);
  const [least, most, step] = sliderRange(value);
  const range = h("input", { type: "range", min: least, max: most, step, "aria-label": name });
  const exact = h("input", { type: "number", step: "any", "aria-label": `${name}, exactly` });
  const back = h(
    "button",
    {
      class: "quiet",
      "aria-label": `Reset ${name}`,
      title: "Reset",
      onclick: () => (exact.focus(), change(leaf, null)),
    },
    "↺",
  );
  range.addEventListener("input", () => change(leaf, range.valueAsNumber));
  exact.addEventListener("input", () => change(leaf, exact.valueAsNumber));
  const element = h("div", { class: "slider" }, h("b", { title: name }, name), range, exact, back);
  const root = () => /** @type {ShadowRoot} */ (element.getRootNode()).activeElement;
  return {
    element,
    focus: () => range.focus(),
    /** @param {boolean} current */
    update(current) {
      const now = numberAt(s.graph, s.playback.numbers, leaf);
      element.classList.toggle("current", current);
      if (now < Number(range.min)) range.min = String(sliderRange(now)[0]);
      if (now > Number(range.max)) range.max = String(sliderRange(now)[1]);
      if (range.valueAsNumber !== now) range.value = String(now);
      if (root() !== exact) exact.value = String(Number(now.toPrecision(6)));
      back.style.visibility = s.overrides.has(leaf) ? "visible" : "hidden";
    },
  };
}

/** @param {any} s @param {number} leaf */
function plotOf(s, leaf) {
  const name = keyTitle(s.graph, leaf);
  const many = (s.graph.tensors.get(s.root)?.shape ?? []).some((/** @type {number} */ size) => size > 1);
  const output = `${many ? "Σ" : ""}${s.graph.title(s.root)}`;
  const why = engineOf(s).why(s.root);
  if (why) return [h("p", { class: "dim" }, `${output} cannot be computed again here: ${why}`)];
  const begun = performance.now();
  const { x: at, y, slope, measured } = engineOf(s).tangent(leaf, s.root, s.overrides);
  const cost = performance.now() - begun;
  let [least, most] = sliderRange(numberAt(s.graph, s.base, leaf));
  if (at < least || at > most) {
    const [low, high] = sliderRange(at);
    [least, most] = [Math.min(least, low), Math.max(most, high)];
  }
  const samples = cost < 1 ? 60 : cost < 10 ? 24 : 8;
  const numbers = new Map(s.overrides);
  const points = Array.from({ length: samples + 1 }, (_, i) => least + ((most - least) * i) / samples).map((x) => [
    x,
    engineOf(s).output(s.root, numbers.set(leaf, x)),
  ]);
  const finite = points.map((p) => p[1]).filter(Number.isFinite);
  const says = [
    s.line.root >= 0 && h("div", {}, "chain rule ", h("b", { class: "bw" }, `∂${output}/∂${name} = ${pretty(slope)}`)),
    Number.isNaN(slope) && h("small", { class: "dim" }, `${name} gets no gradient that is known here.`),
    h(
      "div",
      {},
      "measured ",
      h("b", {}, `≈ ${pretty(measured)}`),
      h("small", { class: "dim" }, " (finite difference)"),
    ),
  ];
  if (!finite.length || !Number.isFinite(y)) return says;
  const label = `${output} over ${name}, with its tangent at ${pretty(at)}`;
  return [
    drawPlot(points, [at, y, slope], [Math.min(...finite), Math.max(...finite)], [name, output], label),
    h("figcaption", {}, ...says),
  ];
}

/**
 * @param {number[][]} points @param {number[]} tangent x, y and slope @param {number[]} range of y
 * @param {string[]} names of the axes @param {string} label
 */
function drawPlot(points, [at, y, slope], [low, high], [across, up], label) {
  const { width, height } = PLOT;
  const [least, most] = [points[0][0], points[points.length - 1][0]];
  const room = (high - low || 1) * 0.08;
  const px = (/** @type {number} */ x) => 8 + ((x - least) / (most - least || 1)) * (width - 16);
  const py = (/** @type {number} */ v) =>
    height - 18 - ((v - low + room) / (high - low + 2 * room || 1)) * (height - 34);
  const path = points
    .map(([x, v], i) =>
      Number.isFinite(v)
        ? `${i && Number.isFinite(points[i - 1][1]) ? "L" : "M"}${px(x).toFixed(1)} ${py(v).toFixed(1)}`
        : "",
    )
    .join("");
  // The tangent ends where the plot does.
  const end = (/** @type {number} */ way) => {
    const free = slope * way > 0 ? high + room - y : y - low + room;
    return way * Math.min((most - least) * 0.22, slope ? Math.max(free, 0) / Math.abs(slope) : Infinity);
  };
  const [from, to] = [end(-1), end(1)];
  const text = (
    /** @type {string} */ words,
    /** @type {number} */ x,
    /** @type {number} */ top,
    /** @type {string} */ end,
  ) => {
    const made = drawn("text", { x, y: top, "text-anchor": end });
    made.append(words);
    return made;
  };
  const line = (/** @type {string} */ kind, /** @type {number[]} */ [x1, y1, x2, y2]) =>
    drawn("line", { class: kind, x1, y1, x2, y2 });
  const box = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, width, height };
  const zero = low < 0 && high > 0 ? [line("axis", [8, py(0), width - 8, py(0)])] : [];
  return drawn(
    "svg",
    box,
    ...zero,
    line("axis", [px(at), 14, px(at), height - 16]),
    drawn("path", { class: "curve", d: path }),
    Number.isFinite(slope)
      ? line("tangent", [px(at + from), py(y + from * slope), px(at + to), py(y + to * slope)])
      : drawn("g"),
    drawn("circle", { class: "at", cx: px(at), cy: py(y), r: 4.5 }),
    text(`${up} = ${pretty(y)}`, 8, 11, "start"),
    text(pretty(least), 8, height - 4, "start"),
    text(`${across} = ${pretty(at)}`, Math.min(Math.max(px(at), 90), width - 90), height - 4, "middle"),
    text(pretty(most), width - 8, height - 4, "end"),
  );
}
