/**
 * What if a leaf held another number? Sliders recompute the graph forward and backward. Beside them the output is drawn
 * over the leaf, with the tangent that the gradient promises and a slope measured by finite differences.
 */

import { drawn, h, refill, setText, show } from "./dom.js";
import { pretty } from "./notation.js";
import { engineOf, override, recompute, selectedNode } from "./session.js";

const SHOWN = 12;
const PLOT = { width: 300, height: 170 };

/** The leaves that a slider can move. @param {any} s @returns {number[]} */
export function scalarLeaves(s) {
  const { graph, base } = s;
  const all = [];
  for (let node = 0; node < graph.count; node++) {
    if (graph.kind[node] === 0 && !graph.tensors.has(node) && base.known[node]) all.push(node);
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
  const element = h(
    "section",
    { class: "panel whatif", "aria-label": "What if" },
    h("div", {}, list, more, reset),
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
      if (!leaves.length) return void setText(more, "This graph has no leaf that holds one number.");
      const chosen = selectedNode(s);
      if (what === "selected" && leaves.includes(chosen)) current = chosen;
      const shown = [...new Set([...leaves.slice(0, SHOWN), ...s.overrides.keys(), current])];
      for (const leaf of shown) if (!made.has(leaf)) made.set(leaf, slider(s, leaf, change));
      if (list.childElementCount !== shown.length) refill(list, ...shown.map((leaf) => made.get(leaf).element));
      for (const leaf of shown) made.get(leaf).update(leaf === current);
      setText(
        more,
        leaves.length > shown.length ? `${leaves.length - shown.length} more: choose one in the drawing.` : "",
      );
      show(reset, s.overrides.size > 0);
      refill(plot, ...plotOf(s, current));
    },
  };
}

/** @param {any} s @param {number} leaf @param {(leaf: number, value: number | null) => void} change */
function slider(s, leaf, change) {
  const name = s.graph.title(leaf);
  const value = s.base.value[leaf];
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
  const element = h("div", { class: "slider" }, h("b", {}, name), range, exact, back);
  const root = () => /** @type {ShadowRoot} */ (element.getRootNode()).activeElement;
  return {
    element,
    /** @param {boolean} current */
    update(current) {
      const now = s.playback.numbers.value[leaf];
      element.classList.toggle("current", current);
      if (range.valueAsNumber !== now) range.value = String(now);
      if (root() !== exact) exact.value = String(Number(now.toPrecision(6)));
      back.style.visibility = s.overrides.has(leaf) ? "visible" : "hidden";
    },
  };
}

/** @param {any} s @param {number} leaf @returns {(x: number) => number} */
function outputOver(s, leaf) {
  const run = engineOf(s).run;
  const numbers = new Map(s.overrides);
  return (x) => run(numbers.set(leaf, x)).value[s.root];
}

/** @param {any} s @param {number} leaf */
function plotOf(s, leaf) {
  const name = s.graph.title(leaf);
  const output = s.graph.title(s.root);
  const why = engineOf(s).why(s.root);
  if (why) return [h("p", { class: "dim" }, `${output} cannot be computed again here: ${why}`)];
  const { x: at, y, slope, measured } = engineOf(s).tangent(leaf, s.root, s.overrides);
  const f = outputOver(s, leaf);
  let [least, most] = sliderRange(s.base.value[leaf]);
  least = Math.min(least, at);
  most = Math.max(most, at);
  const samples = s.graph.count > 2000 ? 24 : 60;
  const points = Array.from({ length: samples + 1 }, (_, i) => least + ((most - least) * i) / samples).map((x) => [
    x,
    f(x),
  ]);
  const finite = points.map((p) => p[1]).filter(Number.isFinite);
  const says = [
    s.line.root >= 0 && h("div", {}, "chain rule ", h("b", { class: "bw" }, `∂${output}/∂${name} = ${pretty(slope)}`)),
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
  const reach = (most - least) * 0.22;
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
      ? line("tangent", [px(at - reach), py(y - reach * slope), px(at + reach), py(y + reach * slope)])
      : drawn("g"),
    drawn("circle", { class: "at", cx: px(at), cy: py(y), r: 4.5 }),
    text(up, 8, 11, "start"),
    text(pretty(least), 8, height - 4, "start"),
    text(`${across} = ${pretty(at)}`, Math.min(Math.max(px(at), 90), width - 90), height - 4, "middle"),
    text(pretty(most), width - 8, height - 4, "end"),
  );
}
