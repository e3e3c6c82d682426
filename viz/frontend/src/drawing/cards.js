/**
 * Sizes and static text of the cards. A card is wide enough for the widest number of a pass, so that nothing moves
 * while a user steps. Sizes are those of minigrad_viz/pictures/cards.py.
 */
import { ceil, finite, max, min, round } from "../base/math.js";
import { tilesAcross } from "../base/tiles.js";
import { fitText, textWidth } from "../base/measure.js";
import { brief, formulaText } from "../base/notation.js";
import { BLOCKED, BROKEN, CONSTANT, LEAF } from "../model/trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Cells} Cells */

/**
 * A measured box. `rim` is the width of an output's second border, or the offset of a stack; `picture` is the size of
 * each of a tensor's two heatmaps.
 * @typedef {object} Card
 * @property {"leaf" | "op" | "constant" | "broken" | "block"} kind
 * @property {boolean} output
 * @property {boolean} still whether it never receives a gradient
 * @property {0 | 1 | 2} alarm 1: affected, 2: the origin
 * @property {string} name truncated
 * @property {string} [title] the full name
 * @property {boolean} named
 * @property {string} op the operation, for narrow cards; "" for a leaf
 * @property {string} rule " = a · b", or ""
 * @property {string} note shape and dtype of a tensor; contents of a block
 * @property {string} badge "×12" of a fold
 * @property {{w: number, h: number} | null} picture
 * @property {number} [scale] the magnitude drawn in full colour in both heatmaps
 * @property {number} w including the rim
 * @property {number} h including the rim
 * @property {number} rim
 */

/** @type {Card} */
const BLANK = {
  ...{ kind: "op", output: false, still: false, alarm: 0, name: "", named: false, op: "", rule: "", note: "", badge: "" },
  ...{ picture: null, w: 0, h: 0, rim: 0 },
};

/** The smallest readable font size, in pixels. */
export const SMALL = 11.5;
export const PAD = 9;
export const HEAD = 25;
export const ROW = 20;
export const RIM = 3.5;
export const STACK = 6;
/** The width of the label "data" or "grad" in a row, including the smallest gap after it. */
export const CAPTION = 34;
const WIDEST = 210;
export const RAISED = "raised an error";
const LEAST_NUMBER = 36;
const REMARKS = new Set(["partial", "freed", "replayed"]);

/** Return for each node whether an alarm affects it (1) or originates there (2). @param {Graph} graph */
export function alarmsOf(graph) {
  const alarms = new Uint8Array(graph.count);
  for (const note of graph.notes) {
    if (REMARKS.has(note.kind)) continue;
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
export function partsOf(graph, node, limit = 24) {
  const near = (/** @type {number} */ one) =>
    (graph.block[one] === graph.block[node] && graph.short.get(one)) || graph.title(one, limit);
  const parts = /** @type {(string | number)[]} */ ([near(node)]);
  for (let edge = graph.start[node]; edge < graph.start[node + 1]; edge += 1) {
    const operand = graph.operand[edge];
    const value = graph.kind[operand] === CONSTANT ? graph.numbers.value[operand] : null;
    parts.push(typeof value === "number" ? value : near(operand));
  }
  return parts;
}

/**
 * Return the formula of a node in names; "" for a leaf.
 * @param {Graph} graph @param {number} node @param {number} [limit]
 */
export function ruleOf(graph, node, limit = 24) {
  const at = graph.nodeFormula[node];
  if (at >= 0) return formulaText(graph.formulas[at], partsOf(graph, node, limit));
  if (graph.op[node] < 0) return "";
  const operands = partsOf(graph, node, limit)
    .slice(1)
    .map((part) => (typeof part === "number" ? brief(part) : part));
  return `${graph.ops[graph.op[node]].name}(${operands.join(", ")})`;
}

/**
 * Whether a node is drawn with a heatmap; single-element tensors are written as numbers.
 * @param {Graph} graph @param {number} node
 */
export function pictured(graph, node) {
  const tensor = graph.tensors.get(node);
  return (
    graph.kind[node] !== BROKEN && tensor !== undefined && tensor.shape.reduce((size, side) => size * side, 1) !== 1
  );
}

/** Format a shape. @param {number[]} shape */
export const shapeText = (shape) => (shape.length ? shape.join("×") : "scalar");

/**
 * Return the size of a heatmap in a card: its own aspect ratio, as far as it remains visible.
 * @param {Cells | null} cells @param {number[]} shape
 */
function pictureSize(cells, shape) {
  const across = tilesAcross(shape);
  const cols = cells?.cols ?? (shape[shape.length - 1] ?? 1) * across;
  const rows = cells?.rows ?? shape.slice(0, -1).reduce((product, side) => product * side, 1) / across;
  if (!rows || !cols) return { w: 40, h: 14 };
  const side = min(64 / cols, 54 / rows, 14);
  return { w: round(max(cols * side, 14)), h: round(max(rows * side, 12)) };
}

/** Return the width of a number, or of an array drawn as one. @param {import("../base/types.js").Quantity | null} x */
const widthOf = (x) => {
  const number = typeof x === "number" ? x : x?.size === 1 ? x.cells[0] : null;
  return number === null ? 0 : textWidth(brief(number), 12.5);
};

/**
 * Return the widths needed by `nodes`: for the value, and for the running sums of the gradient.
 * @param {Graph} graph
 * @param {Iterable<number>} nodes
 */
export function numberRooms(graph, nodes) {
  const wanted = new Map([...nodes].map((node) => [node, { value: LEAST_NUMBER, grad: LEAST_NUMBER, of: 0 }]));
  const { numbers } = graph;
  for (const [node, room] of wanted) {
    if (graph.state[node] === BLOCKED) room.grad = textWidth("blocked", 12.5);
    room.value = max(room.value, widthOf(numbers.value[node]));
  }
  for (const run of numbers.runs) {
    /** @type {Map<number, number>} */
    const met = new Map();
    for (let k = 0; k < run.edge.length; k += 1) {
      const node = graph.operand[run.edge[k]];
      const room = wanted.get(node);
      if (room === undefined) continue;
      met.set(node, (met.get(node) ?? 0) + 1);
      room.grad = max(room.grad, 1.13 * widthOf(run.total[k]));
    }
    for (const [node, of] of met) {
      const room = wanted.get(node);
      if (room !== undefined) room.of = max(room.of, of);
    }
  }
  return wanted;
}

/**
 * Format the Σ of a gradient with several contributions.
 * @param {number} met @param {number} of @param {boolean} final
 */
export const sumText = (met, of, final) => (of < 2 ? "" : final ? `Σ ${of}` : `Σ ${met} of ${of}`);

/**
 * Return the card of a node.
 * @param {Graph} graph
 * @param {number} node
 * @param {{value: number, grad: number, of: number}} room from `numberRooms`
 * @param {Uint8Array} alarms
 * @returns {Card}
 */
export function nodeCard(graph, node, room, alarms) {
  const output = graph.outputs.includes(node);
  const kind = /** @type {const} */ (["leaf", "op", "constant", "broken"])[graph.kind[node]];
  const value = graph.numbers.value[node];
  const wild = typeof value === "number" && !finite(value);
  const alarm = /** @type {0 | 1 | 2} */ (alarms[node] || Number(wild));
  const rim = output ? RIM : 0;
  const tensor = graph.tensors.get(node);
  const still = kind !== "broken" && graph.state[node] === BLOCKED;
  const named = graph.names[node] !== null;
  /** @type {Card} */
  const card = { ...BLANK, ...{ kind, output, alarm, rim, still, named } };
  if (graph.kind[node] === CONSTANT && !pictured(graph, node)) {
    card.name = typeof value === "number" ? brief(value) : graph.title(node);
    card.w = ceil(max(52, textWidth(card.name, 12.5) + textWidth("const", 11) + 2 * PAD + 10)) + 2 * rim;
    card.h = 26 + 2 * rim;
    return card;
  }
  const { computes } = graph.attrs.get(node) ?? {};
  const call = graph.how && !named ? computes : "";
  const rule = call ? "" : ruleOf(graph, node);
  card.title = call || (graph.short.get(node) ?? graph.title(node, 60));
  card.name = fitText(card.title, rule ? 0.7 * WIDEST : WIDEST, 13, true);
  const taken = textWidth(card.name, 13, card.named);
  card.op = rule && graph.op[node] >= 0 ? graph.ops[graph.op[node]].name : "";
  card.rule = rule && fitText(` = ${rule}`, WIDEST - taken, 13);
  const widths = [76, taken + textWidth(card.rule, 13) + (alarm ? 20 : 0)];
  const sum = room.of > 1 ? textWidth(sumText(room.of - 1, room.of, false), 11, true) + 6 : 0;
  if (tensor && graph.how) {
    card.note = fitText(`${shapeText(tensor.shape)} ${tensor.dtype}`, WIDEST, 11);
    widths.push(textWidth(card.note, 11));
    card.h = HEAD + ROW;
  } else if (tensor && pictured(graph, node)) {
    card.picture = pictureSize(typeof value === "number" ? null : value, tensor.shape);
    card.note = fitText(`${shapeText(tensor.shape)} ${tensor.dtype}`, WIDEST, 11);
    const half = max(
      card.picture.w,
      textWidth("grad", 11) + sum + (card.still ? textWidth("blocked", 11) : 0),
    );
    widths.push(2 * half + 14, textWidth(card.note, 11));
    card.h = HEAD + 18 + card.picture.h + 22;
  } else if (kind === "broken") {
    widths.push(textWidth(RAISED, 12.5));
    card.h = HEAD + ROW + 4;
  } else {
    widths.push(CAPTION + 2 + room.value, CAPTION + 2 + room.grad + sum);
    card.h = HEAD + 2 * ROW;
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
  const shown = fitText(name, WIDEST, 13, true);
  const many = (/** @type {number} */ n, /** @type {string} */ one, /** @type {string} */ more) =>
    `${n.toLocaleString("en")} ${n === 1 ? one : more}`;
  const note =
    about ||
    (inside.ops || !inside.leaves ? many(inside.ops, "operation", "operations") : many(inside.leaves, "leaf", "leaves"));
  const head =
    textWidth(shown, 13, true) + 20 + (badge ? textWidth(badge, 12, true) + 10 : 0) + (inside.alarm ? 20 : 0);
  const w = ceil(max(110, head, textWidth(note, 11)) + 2 * PAD) + STACK;
  const { output, alarm } = inside;
  const h = HEAD + 38 + STACK;
  return { ...BLANK, ...{ output, alarm, note, badge, w, h }, kind: "block", name: shown, named: true };
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
 * Return a card for a narrow layout: without its formula, as `farBody` of parts.js draws it.
 * @param {Card} card @param {{value: number, grad: number}} [rooms] widths of the node's numbers
 * @returns {Card}
 */
export function tightCard(card, rooms) {
  const { picture, kind, rim } = card;
  const whole = card.title ?? card.name;
  const name = fitText(shortTitle(whole), 100, SMALL, true); // measured only: the text drawn depends on the scale
  const numbers = picture || !rooms ? 0 : max(rooms.value, rooms.grad);
  const room = kind === "block" ? 1.5 : 1.15; // text keeps its size when the drawing is scaled down
  const w = ceil(max(44, room * textWidth(`${name} ${card.badge}`.trim(), SMALL, true), numbers, picture ? 2 * picture.w : 0) + 10);
  const plain = card.h < HEAD + 2 * ROW;
  const high = picture ? picture.h + 22 : kind === "block" ? 38 : plain ? 22 : 40;
  const out = kind === "block" ? STACK : 2 * rim;
  return { ...card, name: whole, w: w + out, h: high + out };
}

/**
 * Count the contents of each block, inner blocks included; O(nodes + blocks).
 * @param {Graph} graph @param {Uint8Array} alarms
 */
export function contentsOf(graph, alarms) {
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
