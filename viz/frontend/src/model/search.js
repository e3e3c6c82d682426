/** Search for nodes by name, op, scope, source line or value. */

import { abs, min } from "../base/math.js";
import { outwards } from "./blocks.js";
import { plainDigits, pretty, readNumber } from "../base/notation.js";
import { CONSTANT } from "./trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {(node: number) => number} Ranking rank of a node: smaller is better; MISS if it does not match */

const MOST_FOUND = 50;
const MISS = 100;
const [EXACT, BEGINNING, OP_NAME, INSIDE, OP_PART, SCOPE_NAME, NUMBER, SCOPE_PART, LINE] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

/**
 * Return the nodes that match every word of `text`, best first, at most 50.
 * @param {Graph} graph
 * @param {string} text
 * @returns {number[]}
 */
export function search(graph, text) {
  const words = plainDigits(text).toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const rankings = words.map((word) => rankingBy(graph, word));
  /** @type {number[][]} */
  const found = [];
  for (let node = 0; node < graph.count; node += 1) {
    let rank = 0;
    for (let i = 0; i < rankings.length && rank < MISS; i += 1) rank += rankings[i](node);
    if (rank >= MISS) continue;
    found[rank] ??= [];
    if (found[rank].length < MOST_FOUND) found[rank].push(node);
  }
  return found.flat().slice(0, MOST_FOUND);
}

/** @param {Graph} graph @param {string} word @returns {Ranking} */
function rankingBy(graph, word) {
  const ops = graph.ops.map(({ name }) => rankOf(name.toLowerCase(), word, OP_NAME, OP_PART, OP_PART));
  const scopes = graph.blocks.map((block, at) => {
    if (at === 0) return MISS;
    const whole = block.name.toLowerCase() === word;
    return whole ? SCOPE_NAME : pathOf(graph, at).toLowerCase().includes(word) ? SCOPE_PART : MISS;
  });
  const handle = /^v?\d+$/.test(word) ? Number(word.replace("v", "")) : -1;
  const fits = numberTest(word);
  return (node) => {
    const name = graph.names[node];
    let rank = name === null ? MISS : rankOf(plainDigits(name).toLowerCase(), word, EXACT, BEGINNING, INSIDE);
    if (node === handle && name === null && graph.kind[node] !== CONSTANT) rank = EXACT;
    if (rank <= OP_NAME) return rank;
    const op = graph.op[node];
    rank = min(rank, op < 0 ? MISS : ops[op], scopes[graph.block[node]]);
    if (rank > NUMBER && fits !== null && fits(graph, node)) rank = NUMBER;
    if (rank > LINE && graph.lines.get(node)?.toLowerCase().includes(word)) rank = LINE;
    return rank;
  };
}

/**
 * @param {string} text
 * @param {string} word
 * @param {number} exact
 * @param {number} beginning
 * @param {number} inside
 */
function rankOf(text, word, exact, beginning, inside) {
  const at = text.indexOf(word);
  if (at < 0) return MISS;
  return at > 0 ? inside : text.length === word.length ? exact : beginning;
}

/**
 * Return a test whether a node's value starts with `word` when written, as 0.33 for 1/3; null if `word` is not a
 * number.
 * @param {string} word
 * @returns {((graph: Graph, node: number) => boolean) | null}
 */
function numberTest(word) {
  const written = word.replace("−", "-");
  const x = readNumber(written);
  if (x === null) return null;
  if (Number.isNaN(x)) return holds((value) => Number.isNaN(value), ({ nan }) => nan > 0);
  if (abs(x) === Infinity) return holds((value) => value === x, ({ inf }) => inf > 0);
  const start = written.replace(/^\+/, "").replace(/^(-?)\./, "$10.").replace("-", "−");
  const near = written.includes("e") ? abs(x) * 1e-5 : 1.00001 * 10 ** -(written.split(".")[1] ?? "").length;
  // Formatting 100,000 numbers would be slow for each key; distant ones need not be formatted.
  const same = (/** @type {string} */ shown) => shown.startsWith(start) || shown === pretty(x);
  return holds((value) => abs(value - x) <= near && same(pretty(value)), () => false);
}

/**
 * @param {(x: number) => boolean} number
 * @param {(cells: import("../base/types.js").Cells) => boolean} array
 */
function holds(number, array) {
  return (/** @type {Graph} */ graph, /** @type {number} */ node) => {
    const value = graph.numbers.value[node];
    return value !== null && (typeof value === "number" ? number(value) : array(value));
  };
}

// --- names and scopes ------------------------------------------------------------------------------------------------

/**
 * Return the path of a block, without the graph itself: "layer1/neuron0".
 * @param {Graph} graph
 * @param {number} at
 */
export function pathOf(graph, at) {
  const names = outwards(graph, at).map((block) => graph.blocks[block].name);
  return names.reverse().join("/");
}

/**
 * Return for each block the outermost matching block around it, itself included; -1 if there is none.
 * @param {import("../base/types.js").Block[]} blocks
 * @param {boolean[]} matches
 */
export function outermost(blocks, matches) {
  const found = new Int32Array(blocks.length).fill(-1);
  for (let at = 0; at < blocks.length; at += 1) {
    const { outer } = blocks[at];
    const around = outer < 0 ? -1 : found[outer];
    found[at] = around >= 0 ? around : matches[at] ? at : -1;
  }
  return found;
}
