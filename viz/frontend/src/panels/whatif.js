/**
 * The what-if panel: sliders change leaves and recompute the graph, forward and backward. A plot shows the output as a
 * function of the leaf, with the tangent given by the gradient and a derivative measured by finite differences.
 */

import { h, memoize, onSubmit, tag } from "../base/dom.js";
import { abs, ceil, isFinite, floor, log10, max, min, round } from "../base/math.js";
import { unwrapScalar } from "../drawing/appearance.js";
import { formatPretty } from "../base/notation.js";
import { getEngine, setOverride, offerElement, recompute, selectedNode, notify } from "./session.js";
import { elementKey, isEditable, findKey, keyTitle, leafOf, valueAt } from "../engine/keys.js";

/** @typedef {import("./session.js").Session} Session */

const MAX_SLIDERS = 12;
const PLOT_SIZE = { width: 300, height: 170 };

/** Return the scalar leaves, as keys of `overrides`. @param {Session} s @returns {number[]} */
export function scalarLeaves({ graph }) {
  const all = [];
  for (let node = 0; node < graph.count; node++) {
    const shape = graph.tensors.get(node)?.shape;
    const isScalar = !shape || shape.every((size) => size === 1);
    if (isScalar && graph.kind[node] === 0 && isEditable(graph, node)) all.push(shape ? elementKey(graph, node, 0) : node);
  }
  return all;
}

/**
 * Return a slider range with round bounds around a number.
 * @param {number} x
 * @returns {[number, number, number]} minimum, maximum, step
 */
export function sliderRange(x) {
  const span = isFinite(x) ? max(2, 2 * abs(x)) : 2;
  const unit = 10 ** floor(log10(span));
  const radius = ceil(span / unit) * unit;
  const middle = isFinite(x) ? round(x / unit) * unit : 0;
  const roundDigits = (/** @type {number} */ number) => Number(number.toPrecision(12));
  return [roundDigits(middle - radius), roundDigits(middle + radius), roundDigits(unit / 10)];
}

/**
 * Return the slider range of a leaf: it includes the recorded and the current value.
 * @param {Session} s @param {number} leaf @param {number} now
 */
function leafRange(s, leaf, now) {
  const [least, most, step] = sliderRange(valueAt(s.graph, s.recorded, leaf));
  const [low, high] = now < least || now > most ? sliderRange(now) : [least, most];
  return [min(least, low), max(most, high), step];
}

/**
 * Return the initial leaf: the selected one, or else that of the largest gradient.
 * @param {Session} s @param {number[]} leaves
 */
export function firstLeaf(s, leaves) {
  const { graph, recorded, pass } = s;
  const sizes = new Map();
  recorded.runs[pass]?.total.forEach((total, k) => {
    sizes.set(graph.operand[recorded.runs[pass].edge[k]], abs(Number(unwrapScalar(total))) || 0);
  });
  const size = (/** @type {number} */ key) => sizes.get(leafOf(graph, key)) ?? 0;
  const chosen = leaves.find((key) => leafOf(graph, key) === selectedNode(s));
  return chosen ?? leaves.reduce((best, key) => (size(key) > size(best) ? key : best), leaves[0] ?? -1);
}

/** @param {Session} s */
export function whatIfPanel(s) {
  const leaves = scalarLeaves(s);
  const plot = memoize((leaf) => (leaf < 0 ? [] : createPlot(s, leaf)));
  let current = firstLeaf(s, leaves);
  let first = current; // shown first: the chosen leaf, not the one being moved
  const field = elementField(s);
  /** @param {number} leaf @param {number | null} value */
  const change = (leaf, value) => {
    current = leaf;
    if (value === null || isFinite(value)) setOverride(s, leaf, value);
  };
  let last = /** @type {import("../base/dom.js").Tag | null} */ (null);
  return (/** @type {string} */ kind) => {
    if (last && (kind === "moved" || kind === "playing")) return last;
    const chosen = selectedNode(s);
    const matching = [...leaves, ...s.picked].filter((key) => leafOf(s.graph, key) === chosen);
    if (kind === "selected") first = current = matching.at(-1) ?? current;
    if (kind === "picked" || current < 0) first = current = s.picked.at(-1) ?? current;
    const all = [first, current, ...s.picked, ...leaves.slice(0, MAX_SLIDERS), ...s.overrides.keys()];
    const visibleKeys = [...new Set(all)].filter((key) => key >= 0);
    const rest = leaves.filter((leaf) => !visibleKeys.includes(leaf)).length;
    const note = rest ? `${rest} more: select one in the drawing.` : hintText(s, leaves, visibleKeys);
    const reset = () => (s.overrides.clear(), recompute(s));
    last = tag(
      "section.panel.whatif",
      { label: "What if" },
      tag(
        "div",
        {},
        tag("div.sliders", {}, ...visibleKeys.map((leaf) => slider(s, leaf, leaf === current, change))),
        field(chosen),
        tag("p.dim", {}, note),
        tag("button", { hidden: !s.overrides.size, onclick: reset }, "Reset all"),
      ),
      tag("figure.plot", {}, ...plot(current, s.playback.numbers, s.timeline)),
    );
    return last;
  };
}

/** Return a hint. @param {Session} s @param {number[]} leaves @param {number[]} visibleKeys */
function hintText(s, leaves, visibleKeys) {
  if (!s.graph.tensors.size) return leaves.length ? "" : "This graph has no scalar leaf.";
  if (!visibleKeys.length) return "Select a leaf, then click an element of its heatmap or name it here.";
  return "Nodes without a gradient, such as comparisons and detached ones, keep their values.";
}

/**
 * Create the field for the name of an element, in a graph of tensors; it suggests the selected leaf.
 * @param {Session} s
 */
function elementField(s) {
  const { graph } = s;
  const editable = [...graph.tensors.keys()].filter((node) => isEditable(graph, node) && graph.tensors.get(node)?.shape.length);
  if (!editable.length) return () => null;
  const field = h("input", { size: 12, label: "Element to change", spellcheck: "false" });
  let [last, message] = [-1, ""];
  const add = onSubmit(() => {
    const key = findKey(graph, field.value.trim());
    message = key < 0 ? "No such element." : "";
    if (key < 0) notify(s, "panel");
    else offerElement(s, key);
  });
  return (/** @type {number} */ chosen) => {
    const leaf = editable.includes(chosen) ? chosen : last < 0 ? editable[0] : last;
    if (leaf !== last) field.value = keyTitle(graph, elementKey(graph, leaf, 0), graph.names[leaf] ?? undefined);
    last = leaf;
    return tag(
      "form.acts",
      { onsubmit: add },
      field,
      tag("button", {}, "Add element"),
      tag("span.alarm", { role: "status" }, message),
    );
  };
}

/**
 * @param {Session} s @param {number} leaf @param {boolean} current
 * @param {(leaf: number, value: number | null) => void} change
 */
function slider(s, leaf, current, change) {
  const name = keyTitle(s.graph, leaf);
  const value = valueAt(s.graph, s.playback.numbers, leaf);
  const [min, max, step] = leafRange(s, leaf, value);
  const set = (/** @type {any} */ { target }) => change(leaf, target.valueAsNumber);
  const reset = (/** @type {any} */ { target }) => {
    target.previousSibling.focus();
    change(leaf, null);
  };
  return tag(
    "div",
    { class: current ? "slider current" : "slider" },
    tag("b", { title: name }, name),
    tag("input", { type: "range", min, max, step, value, label: name, oninput: set }),
    tag("input", {
      type: "number",
      step: "any",
      value: Number(value.toPrecision(6)),
      label: `${name}, exact value`,
      oninput: set,
    }),
    tag(
      "button",
      {
        class: "quiet",
        style: s.overrides.has(leaf) ? "" : "visibility:hidden",
        label: `Reset ${name}`,
        title: "Reset",
        onclick: reset,
      },
      "↺",
    ),
  );
}

/** @param {Session} s @param {number} leaf */
function createPlot(s, leaf) {
  const name = keyTitle(s.graph, leaf);
  const isTensor = (s.graph.tensors.get(s.root)?.shape ?? []).some((size) => size > 1);
  const output = `${isTensor ? "Σ" : ""}${s.graph.title(s.root)}`;
  const reason = getEngine(s).why(s.root);
  if (reason) return [tag("p.dim", {}, `${output} cannot be recomputed here: ${reason}`)];
  const started = performance.now();
  const { x: at, y, slope, measured } = getEngine(s).tangent(leaf, s.root, s.overrides);
  const cost = performance.now() - started;
  const [least, most] = leafRange(s, leaf, at);
  const samples = cost < 1 ? 60 : cost < 10 ? 24 : 8;
  const numbers = new Map(s.overrides);
  const points = Array.from({ length: samples + 1 }, (_, i) => least + ((most - least) * i) / samples).map((x) => [
    x,
    getEngine(s).output(s.root, numbers.set(leaf, x)),
  ]);
  const heights = points.map((p) => p[1]).filter(isFinite);
  const facts = [
    s.timeline.root >= 0 && tag("div", {}, "chain rule ", tag("b.bw", {}, `∂${output}/∂${name} = ${formatPretty(slope)}`)),
    Number.isNaN(slope) && tag("small.dim", {}, `${name} has no known gradient here.`),
    tag(
      "div",
      {},
      "measured ",
      tag("b", {}, `≈ ${formatPretty(measured)}`),
      tag("small.dim", {}, " (finite difference)"),
    ),
  ];
  if (!heights.length || !isFinite(y)) return facts;
  const label = `${output} against ${name}, with its tangent at ${formatPretty(at)}`;
  return [
    drawPlot(points, [at, y, slope], [min(...heights), max(...heights)], [name, output], label),
    tag("figcaption", {}, ...facts),
  ];
}

/**
 * @param {number[][]} points @param {number[]} tangent x, y and slope @param {number[]} range of y
 * @param {string[]} names of the axes @param {string} label
 */
function drawPlot(points, [at, y, slope], [low, high], [across, up], label) {
  const { width, height } = PLOT_SIZE;
  const [least, most] = [points[0][0], points[points.length - 1][0]];
  const padding = (high - low || 1) * 0.08;
  const px = (/** @type {number} */ x) => 8 + ((x - least) / (most - least || 1)) * (width - 16);
  const py = (/** @type {number} */ v) =>
    height - 18 - ((v - low + padding) / (high - low + 2 * padding || 1)) * (height - 34);
  const path = points
    .map(([x, v], i) =>
      isFinite(v)
        ? `${i && isFinite(points[i - 1][1]) ? "L" : "M"}${px(x).toFixed(1)} ${py(v).toFixed(1)}`
        : "",
    )
    .join("");
  // Clip the tangent to the plot.
  const end = (/** @type {number} */ direction) => {
    const free = slope * direction > 0 ? high + padding - y : y - low + padding;
    return direction * min((most - least) * 0.22, slope ? max(free, 0) / abs(slope) : Infinity);
  };
  const [from, to] = [end(-1), end(1)];
  const text = (
    /** @type {string} */ words,
    /** @type {number} */ x,
    /** @type {number} */ top,
    /** @type {string} */ end,
  ) => tag("text", { x, y: top, "text-anchor": end }, words);
  const line = (/** @type {string} */ kind, /** @type {number[]} */ [x1, y1, x2, y2]) =>
    tag("line", { class: kind, x1, y1, x2, y2 });
  const box = { viewBox: `0 0 ${width} ${height}`, role: "img", label, width, height };
  return tag(
    "svg",
    box,
    low < 0 && high > 0 && line("axis", [8, py(0), width - 8, py(0)]),
    line("axis", [px(at), 14, px(at), height - 16]),
    tag("path.curve", { d: path }),
    isFinite(slope) && line("tangent", [px(at + from), py(y + from * slope), px(at + to), py(y + to * slope)]),
    tag("circle.at", { cx: px(at), cy: py(y), r: 4.5 }),
    text(`${up} = ${formatPretty(y)}`, 8, 11, "start"),
    text(formatPretty(least), 8, height - 4, "start"),
    text(`${across} = ${formatPretty(at)}`, min(max(px(at), 90), width - 90), height - 4, "middle"),
    text(formatPretty(most), width - 8, height - 4, "end"),
  );
}
