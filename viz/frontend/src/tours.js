/**
 * A tour that a lesson scripts: stations with a caption each. The trace names nodes and scopes as the reader sees them;
 * here they become positions and places in the graph, and a name that is not there is told, with those that are.
 */

import { pathOf, plainDigits } from "./search.js";

/** @typedef {import("./types.js").Graph} Graph */
/** @typedef {import("./types.js").Timeline} Timeline */
/** @typedef {import("./types.js").Station} Station */

const MOST_NAMED = 8;

/**
 * The stations of the tour in a trace; none if there is no tour. One station is {at, text, expand?, select?}:
 *
 *     at       a position; "start", "seed" or "end"; {"node": name, "phase": "forward" | "backward"}, where its value
 *              is computed or its gradient final; {"edge": [name, name]}, where the gradient goes over it
 *     expand   a list of scopes to open: "layer1" or "layer1/neuron0"
 *     select   a node, or a scope
 *
 * Throws an Error that says which station is wrong, and why.
 * @param {Graph} graph
 * @param {Timeline} moments
 * @returns {Station[]}
 */
export function stationsOf(graph, moments) {
  return graph.tours.map((item, i) => {
    const where = `Station ${i + 1} of the tour`;
    if (typeof item !== "object" || item === null) throw new Error(`${where} is not an object.`);
    const { at, text, expand = [], select = null } = /** @type {Record<string, unknown>} */ (item);
    if (typeof text !== "string") throw new Error(`${where} has no text.`);
    if (!Array.isArray(expand)) throw new Error(`${where} has no list of scopes in “expand”.`);
    return {
      position: positionAt(graph, moments, at, where),
      text,
      expand: [...new Set(expand.flatMap((scope) => scopesAround(graph, scope, where)))],
      select: select === null ? null : selected(graph, select, where),
    };
  });
}

/** @param {Graph} graph @param {Timeline} moments @param {unknown} at @param {string} where @returns {number} */
function positionAt(graph, moments, at, where) {
  if (at === "start") return 0;
  if (at === "end") return moments.last;
  if (at === "seed" && moments.seed >= 0) return moments.seed;
  if (typeof at === "number") {
    if (Number.isInteger(at) && at >= 0 && at <= moments.last) return at;
    throw new Error(`${where} is at position ${at}: they go from 0 to ${moments.last}.`);
  }
  const { node, phase, edge } = /** @type {Record<string, unknown>} */ (at ?? {});
  if (Array.isArray(edge) && edge.length === 2) return edgePosition(graph, moments, edge, where);
  if (phase === "forward") return moments.computedAt(nodeNamed(graph, node, where));
  if (phase === "backward") {
    const position = moments.finalAt(nodeNamed(graph, node, where));
    if (position >= 0) return position;
    throw new Error(`${where} is where the gradient of “${node}” is final, and it gets none in this pass.`);
  }
  const ways = '{"node": name, "phase": "forward" or "backward"} or {"edge": [name, name]}';
  throw new Error(`${where} is at ${JSON.stringify(at)}. Write a position, "start", "seed", "end", ${ways}.`);
}

/**
 * Where the gradient first goes over an edge between two nodes.
 * @param {Graph} graph
 * @param {Timeline} moments
 * @param {unknown[]} ends
 * @param {string} where
 */
function edgePosition(graph, moments, ends, where) {
  const [one, other] = ends.map((name) => nodeNamed(graph, name, where));
  const [operand, result] = one < other ? [one, other] : [other, one];
  const edges = Array.from(graph.outs(operand)).filter((edge) => graph.result[edge] === result);
  if (edges.length === 0) throw new Error(`${where} is at the edge from “${ends[0]}” to “${ends[1]}”: there is none.`);
  const positions = edges.map(moments.passedAt).filter((position) => position >= 0);
  if (positions.length) return Math.min(...positions);
  throw new Error(`${where} is at the edge from “${ends[0]}” to “${ends[1]}”: no gradient goes over it in this pass.`);
}

// --- names -----------------------------------------------------------------------------------------------------------

/** @param {Graph} graph @param {unknown} name @param {string} where @returns {number} */
function nodeNamed(graph, name, where) {
  const node = findNode(graph, name);
  if (node >= 0) return node;
  const names = graph.names.filter((one) => one !== null);
  throw new Error(`${where} names the node ${quoted(name)}, which is not there. ${whatIsThere(names)}`);
}

/** A node by its name, or by its place on the tape: "v12". @param {Graph} graph @param {unknown} name */
function findNode(graph, name) {
  if (typeof name !== "string") return -1;
  const named = graph.names.indexOf(name);
  const place = /^v(\d+)$/.exec(plainDigits(name));
  if (named >= 0 || place === null) return named;
  const node = Number(place[1]);
  return node < graph.count && graph.names[node] === null ? node : -1;
}

/** The blocks that a name or path stands for. @param {Graph} graph @param {unknown} scope @returns {number[]} */
function findScopes(graph, scope) {
  const found = graph.blocks.map((block, at) => (block.name === scope || pathOf(graph, at) === scope ? at : 0));
  return found.filter((at) => at > 0);
}

/**
 * The blocks of that name and those around them, which must be open too.
 * @param {Graph} graph
 * @param {unknown} scope
 * @param {string} where
 */
function scopesAround(graph, scope, where) {
  const found = findScopes(graph, scope);
  if (found.length === 0) {
    const paths = graph.blocks.slice(1).map((_, i) => pathOf(graph, i + 1));
    throw new Error(`${where} opens the scope ${quoted(scope)}, which is not there. ${whatIsThere(paths)}`);
  }
  const all = [];
  for (const block of found) {
    for (let at = block; at > 0; at = graph.blocks[at].outer) all.push(at);
  }
  return all;
}

/** @param {Graph} graph @param {unknown} name @param {string} where */
function selected(graph, name, where) {
  const [block] = findScopes(graph, name);
  const node = findNode(graph, name);
  return node < 0 && block !== undefined ? `b${block}` : `n${nodeNamed(graph, name, where)}`;
}

/** @param {unknown} name */
function quoted(name) {
  return typeof name === "string" ? `“${name}”` : JSON.stringify(name);
}

/** @param {(string | null)[]} names */
function whatIsThere(names) {
  if (names.length === 0) return "There are none with names.";
  const more = names.length > MOST_NAMED ? `, and ${names.length - MOST_NAMED} more` : "";
  return `There are: ${names.slice(0, MOST_NAMED).join(", ")}${more}.`;
}
