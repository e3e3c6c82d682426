/**
 * The current moment as a table, one row per node. It is the accessible form of the drawing, so it contains everything
 * that a card shows. Above 1,000 rows only those near the viewport exist.
 */

import { formulaLine } from "../drawing/cards.js";
import { setChildren, h } from "../base/dom.js";
import { ceil, floor, max, min } from "../base/math.js";
import { activeNode, select, selectedNode } from "./session.js";
import { formatPretty } from "../base/notation.js";
import { formatGradient, formatQuantity } from "./momenttext.js";

/** @typedef {import("./session.js").Session} Session */

const ROW_HEIGHT = 28;
const MAX_ROWS = 1000;
const KIND_TEXTS = ["leaf", "", "constant", ""];

/** @param {Session} s */
export function tablePanel(s) {
  const body = h("tbody");
  const head = h("tr", {}, ...["node", "formula", "value", "gradient"].map((text) => h("th", { scope: "col" }, text)));
  const grid = h("table", { "aria-rowcount": s.graph.count + 1 }, h("thead", {}, head), body);
  const element = h("div.table", { tabindex: 0, role: "region", label: "Table of all nodes" }, grid);
  /** @type {Map<number, HTMLTableRowElement>} */
  const rows = new Map();
  const renderRows = () => renderWindow(s, element, body, rows);
  element.addEventListener("scroll", () => s.graph.count > MAX_ROWS && renderRows());
  let [current, frameRequest] = [-1, 0];
  return (/** @type {string} */ change, /** @type {{nodes: number[]} | null} */ changed) => {
    if (!rows.size) renderRows();
    for (const node of changed?.nodes ?? rows.keys()) {
      const row = rows.get(node);
      if (row) fillRow(s, node, row);
    }
    const [active, selected] = [activeNode(s), selectedNode(s)];
    const node = selected >= 0 && change === "selected" ? selected : active;
    if (node !== current) {
      cancelAnimationFrame(frameRequest); // once a frame: scrolling during a step would force a synchronous layout
      frameRequest = requestAnimationFrame(() => scrollToRow(s, element, node));
    }
    current = node;
    markRows(rows, active, selected);
    return element;
  };
}

/** Scroll the table, but not the page. @param {Session} s @param {HTMLElement} element @param {number} node */
function scrollToRow(s, element, node) {
  if (node < 0) return;
  const top = node * ROW_HEIGHT;
  const viewHeight = element.clientHeight - 2 * ROW_HEIGHT;
  if (top < element.scrollTop || top > element.scrollTop + viewHeight) element.scrollTop = top - viewHeight / 2;
}

/**
 * @param {Session} s
 * @param {HTMLElement} element
 * @param {HTMLElement} body
 * @param {Map<number, HTMLTableRowElement>} rows
 */
function renderWindow(s, element, body, rows) {
  const { count } = s.graph;
  const isWindowed = count > MAX_ROWS;
  const from = isWindowed ? max(0, floor(element.scrollTop / ROW_HEIGHT) - 20) : 0;
  const to = isWindowed ? min(count, from + 40 + ceil((element.clientHeight || 300) / ROW_HEIGHT)) : count;
  if (rows.size === to - from && rows.has(from)) return;
  for (const [node, row] of rows) if ((node < from || node >= to) && !row.contains(focusedElement(row))) rows.delete(node);
  for (let node = from; node < to; node++) if (!rows.has(node)) rows.set(node, createRow(s, node));
  const inside = [...rows.keys()].sort((a, b) => a - b).map((node) => /** @type {Node} */ (rows.get(node)));
  const gap = (/** @type {number} */ n) =>
    h("tr.gap", { "aria-hidden": true, style: `height:${n * ROW_HEIGHT}px` });
  body.replaceChildren(gap(from), ...inside, gap(count - to));
  markRows(rows, activeNode(s), selectedNode(s));
}

/** @param {HTMLElement} element */
const focusedElement = (element) => /** @type {ShadowRoot} */ (element.getRootNode()).activeElement ?? null;

/** @param {Session} s @param {number} node */
function createRow(s, node) {
  const name = h("button.link", { onclick: () => select(s, `n${node}`) }, s.graph.title(node));
  const rule = h("td.rule", {}, formulaLine(s.graph, node) || KIND_TEXTS[s.graph.kind[node]]);
  const row = h(
    "tr",
    { "aria-rowindex": node + 2 },
    h("th", { scope: "row" }, name),
    rule,
    h("td.fw"),
    h("td.bw"),
  );
  fillRow(s, node, row);
  return row;
}

/** @param {Session} s @param {number} node @param {HTMLTableRowElement} row */
function fillRow(s, node, row) {
  const now = s.playback;
  setChildren(row.cells[2], now.isComputed(node) ? formatQuantity(now.value(node), formatPretty) : "");
  setChildren(row.cells[3], formatGradient(now.gradient(node), formatPretty));
}

/** @param {Map<number, HTMLTableRowElement>} rows @param {number} active @param {number} selected */
function markRows(rows, active, selected) {
  for (const [node, row] of rows) {
    if (node === active) row.setAttribute("aria-current", "step");
    else row.removeAttribute("aria-current");
    row.classList.toggle("chosen", node === selected);
  }
}
