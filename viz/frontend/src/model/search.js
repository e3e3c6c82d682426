/** Search for nodes by name, op, scope, source line or value. */

import { abs, min } from "../base/math.js";
import { ancestorsOf } from "./blocks.js";
import { plainDigits, formatPretty, parseDecimal } from "../base/notation.js";
import { CONSTANT } from "./trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {(node: number) => number} Ranking rank of a node: smaller is better; MISS if it does not match */

const MAX_RESULTS = 50;
const NO_MATCH = 100;
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
  const rankings = words.map((word) => createRanking(graph, word));
  /** @type {number[][]} */
  const results = [];
  for (let node = 0; node < graph.count; node += 1) {
    let rank = 0;
    for (let i = 0; i < rankings.length && rank < NO_MATCH; i += 1) rank += rankings[i](node);
    if (rank >= NO_MATCH) continue;
    results[rank] ??= [];
    if (results[rank].length < MAX_RESULTS) results[rank].push(node);
  }
  return results.flat().slice(0, MAX_RESULTS);
}

/** @param {Graph} graph @param {string} word @returns {Ranking} */
function createRanking(graph, word) {
  const ops = graph.ops.map(({ name }) => rankMatch(name.toLowerCase(), word, OP_NAME, OP_PART, OP_PART));
  const scopes = graph.blocks.map((block, at) => {
    if (at === 0) return NO_MATCH;
    const isExact = block.name.toLowerCase() === word;
    return isExact ? SCOPE_NAME : blockPath(graph, at).toLowerCase().includes(word) ? SCOPE_PART : NO_MATCH;
  });
  const nodeIndex = /^v?\d+$/.test(word) ? Number(word.replace("v", "")) : -1;
  const matchesNumber = numberTest(word);
  return (node) => {
    const name = graph.names[node];
    let rank = name === null ? NO_MATCH : rankMatch(plainDigits(name).toLowerCase(), word, EXACT, BEGINNING, INSIDE);
    if (node === nodeIndex && name === null && graph.kind[node] !== CONSTANT) rank = EXACT;
    if (rank <= OP_NAME) return rank;
    const op = graph.op[node];
    rank = min(rank, op < 0 ? NO_MATCH : ops[op], scopes[graph.block[node]]);
    if (rank > NUMBER && matchesNumber !== null && matchesNumber(graph, node)) rank = NUMBER;
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
function rankMatch(text, word, exact, beginning, inside) {
  const at = text.indexOf(word);
  if (at < 0) return NO_MATCH;
  return at > 0 ? inside : text.length === word.length ? exact : beginning;
}

/**
 * Return a test whether a node's value starts with `word` when written, as 0.33 for 1/3; null if `word` is not a
 * number.
 * @param {string} word
 * @returns {((graph: Graph, node: number) => boolean) | null}
 */
function numberTest(word) {
  const normalized = word.replace("−", "-");
  const x = parseDecimal(normalized);
  if (x === null) return null;
  if (Number.isNaN(x)) return createValueTest((value) => Number.isNaN(value), ({ nan }) => nan > 0);
  if (abs(x) === Infinity) return createValueTest((value) => value === x, ({ inf }) => inf > 0);
  const prefix = normalized.replace(/^\+/, "").replace(/^(-?)\./, "$10.").replace("-", "−");
  const tolerance = normalized.includes("e") ? abs(x) * 1e-5 : 1.00001 * 10 ** -(normalized.split(".")[1] ?? "").length;
  // Formatting 100,000 numbers would be slow for each key; distant ones need not be formatted.
  const startsSame = (/** @type {string} */ text) => text.startsWith(prefix) || text === formatPretty(x);
  return createValueTest((value) => abs(value - x) <= tolerance && startsSame(formatPretty(value)), () => false);
}

/**
 * @param {(x: number) => boolean} number
 * @param {(cells: import("../base/types.js").Cells) => boolean} array
 */
function createValueTest(number, array) {
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
export function blockPath(graph, at) {
  const names = ancestorsOf(graph, at).map((block) => graph.blocks[block].name);
  return names.reverse().join("/");
}

/**
 * Return for each block the outermost matching block around it, itself included; -1 if there is none.
 * @param {import("../base/types.js").Block[]} blocks
 * @param {boolean[]} matches
 */
export function outermostMatch(blocks, matches) {
  const matchOf = new Int32Array(blocks.length).fill(-1);
  for (let at = 0; at < blocks.length; at += 1) {
    const { outer } = blocks[at];
    const outerMatch = outer < 0 ? -1 : matchOf[outer];
    matchOf[at] = outerMatch >= 0 ? outerMatch : matches[at] ? at : -1;
  }
  return matchOf;
}
