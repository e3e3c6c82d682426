/**
 * Sizes and static text of the cards. A card is wide enough for the widest number of a pass, so that nothing moves
 * while a user steps. Sizes are those of minigrad_viz/pictures/cards.py.
 */
import { ceil, isFinite, max, min, round } from "../base/math.js";
import { tileColumns } from "../base/tiles.js";
import { fitText, textWidth } from "../base/measure.js";
import { formatBrief, formulaText } from "../base/notation.js";
import { BLOCKED, BROKEN, CONSTANT, LEAF } from "../model/trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Cells} Cells */

/**
 * A measured box. `rim` is the width of an output's second border, or the offset of a stack; `picture` is the size of
 * each of a tensor's two heatmaps.
 * @typedef {object} Card
 * @property {"leaf" | "op" | "constant" | "broken" | "block"} kind
 * @property {boolean} output
 * @property {boolean} isBlocked whether it never receives a gradient
 * @property {0 | 1 | 2} alarm 1: affected, 2: the origin
 * @property {string} name truncated
 * @property {string} [title] the full name
 * @property {boolean} named
 * @property {string} op the operation, for narrow cards; "" for a leaf
 * @property {string} formula " = a · b", or ""
 * @property {string} note shape and dtype of a tensor; contents of a block
 * @property {string} badge "×12" of a fold
 * @property {{w: number, h: number} | null} picture
 * @property {number} [scale] the magnitude drawn in full colour in both heatmaps
 * @property {number} w including the rim
 * @property {number} h including the rim
 * @property {number} rim
 */

/** @type {Card} */
const EMPTY_CARD = {
  ...{ kind: "op", output: false, isBlocked: false, alarm: 0, name: "", named: false, op: "", formula: "", note: "", badge: "" },
  ...{ picture: null, w: 0, h: 0, rim: 0 },
};

/** The smallest readable font size, in pixels. */
export const SMALL_FONT = 11.5;
export const PAD = 9;
export const HEADER_HEIGHT = 25;
export const ROW_HEIGHT = 20;
export const RIM_WIDTH = 3.5;
export const STACK_OFFSET = 6;
/** The width of the label "data" or "grad" in a row, including the smallest gap after it. */
export const LABEL_WIDTH = 34;
const MAX_WIDTH = 210;
export const RAISED_TEXT = "raised an error";
const MIN_NUMBER_WIDTH = 36;
const REMARK_KINDS = new Set(["partial", "freed", "replayed"]);

/** Return for each node whether an alarm affects it (1) or originates there (2). @param {Graph} graph */
export function alarmLevels(graph) {
  const alarms = new Uint8Array(graph.count);
  for (const note of graph.notes) {
    if (REMARK_KINDS.has(note.kind)) continue;
    for (const node of note.nodes) alarms[node] = max(alarms[node], 1);
    if (note.node >= 0) alarms[note.node] = 2;
  }
  for (const node of graph.stale) alarms[node] = max(alarms[node], 1);
  return alarms;
}

/**
 * Return the parts of a node's formula: its own name, then its operands, constants as numbers.
 * @param {Graph} graph @param {number} node @param {number} [limit] @returns {(string | number)[]}
 */
export function formulaParts(graph, node, limit = 24) {
  const localName = (/** @type {number} */ one) =>
    (graph.block[one] === graph.block[node] && graph.shortNames.get(one)) || graph.title(one, limit);
  const parts = /** @type {(string | number)[]} */ ([localName(node)]);
  for (let edge = graph.start[node]; edge < graph.start[node + 1]; edge += 1) {
    const operand = graph.operand[edge];
    const value = graph.kind[operand] === CONSTANT ? graph.numbers.value[operand] : null;
    parts.push(typeof value === "number" ? value : localName(operand));
  }
  return parts;
}

/**
 * Return the formula of a node in names; "" for a leaf.
 * @param {Graph} graph @param {number} node @param {number} [limit]
 */
export function formulaLine(graph, node, limit = 24) {
  const at = graph.nodeFormula[node];
  if (at >= 0) return formulaText(graph.formulas[at], formulaParts(graph, node, limit));
  if (graph.op[node] < 0) return "";
  const operands = formulaParts(graph, node, limit)
    .slice(1)
    .map((part) => (typeof part === "number" ? formatBrief(part) : part));
  return `${graph.ops[graph.op[node]].name}(${operands.join(", ")})`;
}

/**
 * Whether a node is drawn with a heatmap; single-element tensors are written as numbers.
 * @param {Graph} graph @param {number} node
 */
export function hasHeatmap(graph, node) {
  const tensor = graph.tensors.get(node);
  return (
    graph.kind[node] !== BROKEN && tensor !== undefined && tensor.shape.reduce((size, side) => size * side, 1) !== 1
  );
}

/** Format a shape. @param {number[]} shape */
export const formatShape = (shape) => (shape.length ? shape.join("×") : "scalar");

/**
 * Return the size of a heatmap in a card: its own aspect ratio, as far as it remains visible.
 * @param {Cells | null} cells @param {number[]} shape
 */
function heatmapSize(cells, shape) {
  const columns = tileColumns(shape);
  const cols = cells?.cols ?? (shape[shape.length - 1] ?? 1) * columns;
  const rows = cells?.rows ?? shape.slice(0, -1).reduce((product, side) => product * side, 1) / columns;
  if (!rows || !cols) return { w: 40, h: 14 };
  const side = min(64 / cols, 54 / rows, 14);
  return { w: round(max(cols * side, 14)), h: round(max(rows * side, 12)) };
}

/** Return the width of a number, or of an array drawn as one. @param {import("../base/types.js").Quantity | null} x */
const numberWidth = (x) => {
  const number = typeof x === "number" ? x : x?.size === 1 ? x.cells[0] : null;
  return number === null ? 0 : textWidth(formatBrief(number), 12.5);
};

/**
 * Return the widths needed by `nodes`: for the value, and for the running sums of the gradient.
 * @param {Graph} graph
 * @param {Iterable<number>} nodes
 */
export function numberWidths(graph, nodes) {
  const widths = new Map([...nodes].map((node) => [node, { value: MIN_NUMBER_WIDTH, grad: MIN_NUMBER_WIDTH, of: 0 }]));
  const { numbers } = graph;
  for (const [node, width] of widths) {
    if (graph.state[node] === BLOCKED) width.grad = textWidth("blocked", 12.5);
    width.value = max(width.value, numberWidth(numbers.value[node]));
  }
  for (const run of numbers.runs) {
    /** @type {Map<number, number>} */
    const counts = new Map();
    for (let k = 0; k < run.edge.length; k += 1) {
      const node = graph.operand[run.edge[k]];
      const room = widths.get(node);
      if (room === undefined) continue;
      counts.set(node, (counts.get(node) ?? 0) + 1);
      room.grad = max(room.grad, 1.13 * numberWidth(run.total[k]));
    }
    for (const [node, of] of counts) {
      const room = widths.get(node);
      if (room !== undefined) room.of = max(room.of, of);
    }
  }
  return widths;
}

/**
 * Format the Σ of a gradient with several contributions.
 * @param {number} met @param {number} of @param {boolean} final
 */
export const formatSum = (met, of, final) => (of < 2 ? "" : final ? `Σ ${of}` : `Σ ${met} of ${of}`);

/**
 * Return the card of a node.
 * @param {Graph} graph
 * @param {number} node
 * @param {{value: number, grad: number, of: number}} textWidths from `numberWidths`
 * @param {Uint8Array} alarms
 * @returns {Card}
 */
export function nodeCard(graph, node, textWidths, alarms) {
  const output = graph.outputs.includes(node);
  const kind = /** @type {const} */ (["leaf", "op", "constant", "broken"])[graph.kind[node]];
  const value = graph.numbers.value[node];
  const isNonFinite = typeof value === "number" && !isFinite(value);
  const alarm = /** @type {0 | 1 | 2} */ (alarms[node] || Number(isNonFinite));
  const rim = output ? RIM_WIDTH : 0;
  const tensor = graph.tensors.get(node);
  const isBlocked = kind !== "broken" && graph.state[node] === BLOCKED;
  const named = graph.names[node] !== null;
  /** @type {Card} */
  const card = { ...EMPTY_CARD, ...{ kind, output, alarm, rim, isBlocked, named } };
  if (graph.kind[node] === CONSTANT && !hasHeatmap(graph, node)) {
    card.name = typeof value === "number" ? formatBrief(value) : graph.title(node);
    card.w = ceil(max(52, textWidth(card.name, 12.5) + textWidth("const", 11) + 2 * PAD + 10)) + 2 * rim;
    card.h = 26 + 2 * rim;
    return card;
  }
  const { computes } = graph.attrs.get(node) ?? {};
  const call = graph.runMode && !named ? computes : "";
  const rule = call ? "" : formulaLine(graph, node);
  card.title = call || (graph.shortNames.get(node) ?? graph.title(node, 60));
  card.name = fitText(card.title, rule ? 0.7 * MAX_WIDTH : MAX_WIDTH, 13, true);
  const nameWidth = textWidth(card.name, 13, card.named);
  card.op = rule && graph.op[node] >= 0 ? graph.ops[graph.op[node]].name : "";
  card.formula = rule && fitText(` = ${rule}`, MAX_WIDTH - nameWidth, 13);
  const widths = [76, nameWidth + textWidth(card.formula, 13) + (alarm ? 20 : 0)];
  const sum = textWidths.of > 1 ? textWidth(formatSum(textWidths.of - 1, textWidths.of, false), 11, true) + 6 : 0;
  if (tensor && graph.runMode) {
    card.note = fitText(`${formatShape(tensor.shape)} ${tensor.dtype}`, MAX_WIDTH, 11);
    widths.push(textWidth(card.note, 11));
    card.h = HEADER_HEIGHT + ROW_HEIGHT;
  } else if (tensor && hasHeatmap(graph, node)) {
    card.picture = heatmapSize(typeof value === "number" ? null : value, tensor.shape);
    card.note = fitText(`${formatShape(tensor.shape)} ${tensor.dtype}`, MAX_WIDTH, 11);
    const half = max(
      card.picture.w,
      textWidth("grad", 11) + sum + (card.isBlocked ? textWidth("blocked", 11) : 0),
    );
    widths.push(2 * half + 14, textWidth(card.note, 11));
    card.h = HEADER_HEIGHT + 18 + card.picture.h + 22;
  } else if (kind === "broken") {
    widths.push(textWidth(RAISED_TEXT, 12.5));
    card.h = HEADER_HEIGHT + ROW_HEIGHT + 4;
  } else {
    widths.push(LABEL_WIDTH + 2 + textWidths.value, LABEL_WIDTH + 2 + textWidths.grad + sum);
    card.h = HEADER_HEIGHT + 2 * ROW_HEIGHT;
  }
  card.w = ceil(max(...widths) + 2 * PAD) + 2 * rim;
  card.h += 2 * rim;
  return card;
}

/**
 * Return the box of a collapsed block.
 * @param {Graph} graph
 * @param {number} block
 * @param {{ops: number, leaves: number, alarm: 0 | 1 | 2, output: boolean}} inside
 * @returns {Card}
 */
export function blockCard(graph, block, inside) {
  const { name, kind, count, about } = graph.blocks[block];
  const badge = kind === "fold" && count ? `×${count}` : "";
  const title = fitText(name, MAX_WIDTH, 13, true);
  const countText = (/** @type {number} */ n, /** @type {string} */ singular, /** @type {string} */ plural) =>
    `${n.toLocaleString("en")} ${n === 1 ? singular : plural}`;
  const note =
    about ||
    (inside.ops || !inside.leaves ? countText(inside.ops, "operation", "operations") : countText(inside.leaves, "leaf", "leaves"));
  const headerWidth =
    textWidth(title, 13, true) + 20 + (badge ? textWidth(badge, 12, true) + 10 : 0) + (inside.alarm ? 20 : 0);
  const w = ceil(max(110, headerWidth, textWidth(note, 11)) + 2 * PAD) + STACK_OFFSET;
  const { output, alarm } = inside;
  const h = HEADER_HEIGHT + 38 + STACK_OFFSET;
  return { ...EMPTY_CARD, ...{ output, alarm, note, badge, w, h }, kind: "block", name: title, named: true };
}

/**
 * Drop the type from a name such as "layers[0] · Layer(4→8)"; return the type alone if the name is a number.
 * @param {string} name
 */
export function shortTitle(name) {
  const [first, type] = name.split(" · ");
  return type && /^\d+$/.test(first) ? type.replace(/\(.*/, "") : first;
}

/**
 * Return a card for a narrow layout: without its formula, as `overviewBody` of elements.js draws it.
 * @param {Card} card @param {{value: number, grad: number}} [widths] widths of the node's numbers
 * @returns {Card}
 */
export function compactCard(card, widths) {
  const { picture, kind, rim } = card;
  const title = card.title ?? card.name;
  const name = fitText(shortTitle(title), 100, SMALL_FONT, true); // measured only: the text drawn depends on the scale
  const numbers = picture || !widths ? 0 : max(widths.value, widths.grad);
  const factor = kind === "block" ? 1.5 : 1.15; // text keeps its size when the drawing is scaled down
  const w = ceil(max(44, factor * textWidth(`${name} ${card.badge}`.trim(), SMALL_FONT, true), numbers, picture ? 2 * picture.w : 0) + 10);
  const isLow = card.h < HEADER_HEIGHT + 2 * ROW_HEIGHT;
  const height = picture ? picture.h + 22 : kind === "block" ? 38 : isLow ? 22 : 40;
  const border = kind === "block" ? STACK_OFFSET : 2 * rim;
  return { ...card, name: title, w: w + border, h: height + border };
}

/**
 * Count the contents of each block, inner blocks included; O(nodes + blocks).
 * @param {Graph} graph @param {Uint8Array} alarms
 */
export function blockContents(graph, alarms) {
  const inside = graph.blocks.map(() => ({
    ops: 0,
    leaves: 0,
    alarm: /** @type {0 | 1 | 2} */ (0),
    output: false,
    nodes: 0,
  }));
  for (let node = 0; node < graph.count; node += 1) {
    const box = inside[graph.block[node]];
    const kind = graph.kind[node];
    box.ops += Number(kind !== LEAF && kind !== CONSTANT);
    box.leaves += Number(kind === LEAF);
    box.nodes += 1;
    const alarm = kind === BROKEN ? 2 : alarms[node];
    if (alarm > box.alarm) box.alarm = /** @type {0 | 1 | 2} */ (alarm);
  }
  for (const node of graph.outputs) inside[graph.block[node]].output = true;
  for (let block = graph.blocks.length - 1; block > 0; block -= 1) {
    const box = inside[block];
    const outer = inside[graph.blocks[block].outer];
    outer.ops += box.ops;
    outer.leaves += box.leaves;
    outer.nodes += box.nodes;
    outer.output ||= box.output;
    if (box.alarm > outer.alarm) outer.alarm = box.alarm;
  }
  return inside;
}
