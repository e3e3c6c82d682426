/**
 * The third step of `layout`: permute each column until few links cross. Mirrors layout_order.py, function by function.
 */

import { consumersOf } from "./layout_graph.js";

/** @typedef {import("./layout_graph.js").Layered} Layered */
/** @typedef {Map<number, number[]>} Ends by vertex: the places where its links end in another column, in order */

/**
 * Permute the columns so that few links cross: sweep left and right by turns, keep the best order met.
 *
 * A vertex goes to the mean place of its neighbours, as in Sugiyama et al. (1981); then neighbours in a
 * column change places, as in Gansner et al. (1993). No one start suits all graphs: a walk back from the
 * outputs has no crossings for an expression tree, tape order suits many like samples. Each start ends
 * after six sweeps without progress.
 * @param {Layered} graph
 * @param {number} sweeps
 * @param {number[]} swaps
 */
export function orderColumns(graph, sweeps, swaps) {
  const walk = walkBack(graph);
  const starts = [walk, walk.map((column) => [...column].sort((one, two) => one - two))].slice(0, swaps.length);
  let fewest = Infinity;
  let order = walk;
  for (let turn = 0; turn < starts.length && fewest > 0; turn++) {
    graph.columns = starts[turn];
    let best = { crossings: countCrossings(graph), sweep: 0, columns: copyColumns(graph) };
    for (let sweep = 1; sweep <= sweeps && best.crossings > 0 && sweep <= best.sweep + 6; sweep++) {
      sweepColumns(graph, (sweep + turn) % 2 === 1, turn === 0 && sweep % 4 > 1, swaps[turn]);
      const crossings = countCrossings(graph);
      if (crossings < best.crossings) best = { crossings, sweep, columns: copyColumns(graph) };
    }
    if (best.crossings < fewest) {
      fewest = best.crossings;
      order = best.columns;
    }
  }
  graph.columns = order;
}

/**
 * @param {Layered} graph
 * @returns {number[][]}
 */
function copyColumns(graph) {
  return graph.columns.map((column) => column.slice());
}

/**
 * The columns in the order in which a walk from the outputs back meets their vertices.
 * @param {Layered} graph
 * @returns {number[][]}
 */
function walkBack(graph) {
  /** @type {number[][]} */
  const columns = [];
  for (const rank of graph.rank) while (columns.length <= rank) columns.push([]);
  const seen = new Uint8Array(graph.rank.length);
  const stack = [];
  for (let vertex = graph.rank.length - 1; vertex >= 0; vertex--) {
    if (!consumersOf(graph, vertex).length) stack.push(vertex);
  }
  for (let vertex = stack.pop(); vertex !== undefined; vertex = stack.pop()) {
    if (seen[vertex]) continue;
    seen[vertex] = 1;
    columns[graph.rank[vertex]].push(vertex);
    const before = graph.before[vertex];
    for (let at = before.length - 1; at >= 0; at--) stack.push(graph.owner[before[at]]);
  }
  return columns;
}

/**
 * How many pairs of links cross, in O(E log V): Barth, Jünger and Mutzel (2002).
 *
 * Read a column from top to bottom, port by port, and write down where each link comes from: a crossing is a
 * pair in the wrong order. So inputs of one node that arrive at each other's port cross too.
 * @param {Layered} graph
 * @returns {number}
 */
export function countCrossings(graph) {
  let total = 0;
  const place = new Int32Array(graph.owner.length); // by outlet
  for (let right = 1; right < graph.columns.length; right++) {
    let count = 0;
    for (const vertex of graph.columns[right - 1]) for (const outlet of graph.outlets[vertex]) place[outlet] = ++count;
    if (count < 2) continue;
    const origins = [];
    let ordered = true;
    for (const vertex of graph.columns[right]) {
      for (const outlet of graph.before[vertex]) {
        if (origins.length && origins[origins.length - 1] > place[outlet]) ordered = false;
        origins.push(place[outlet]);
      }
    }
    if (!ordered) total += countInversions(origins, count);
  }
  return total;
}

/**
 * The pairs of numbers from 1 to `most` of which the larger comes first.
 * @param {number[]} origins
 * @param {number} most
 * @returns {number}
 */
function countInversions(origins, most) {
  let total = 0;
  const tree = new Int32Array(most + 1); // a Fenwick tree: counts of the origins met so far
  for (let met = 0; met < origins.length; met++) {
    total += met;
    for (let below = origins[met]; below > 0; below &= below - 1) total -= tree[below];
    for (let at = origins[met]; at <= most; at += at & -at) tree[at] += 1;
  }
  return total;
}

/**
 * For each vertex linked to the column `fixed` before it: the places of the outlets there, in order.
 * @param {Layered} graph
 * @param {number[]} fixed
 * @returns {Ends}
 */
function endsBefore(graph, fixed) {
  /** @type {Ends} */
  const ends = new Map();
  let at = 0;
  for (const vertex of fixed) {
    for (const outlet of graph.outlets[vertex]) {
      for (const other of graph.after[outlet]) addEnd(ends, other, at);
      at++;
    }
  }
  return ends;
}

/**
 * For each vertex linked to the column `fixed` after it: the places of the ports there, in order.
 * @param {Layered} graph
 * @param {number[]} fixed
 * @returns {Ends}
 */
function endsAfter(graph, fixed) {
  /** @type {Ends} */
  const ends = new Map();
  let at = 0;
  for (const vertex of fixed) {
    for (const outlet of graph.before[vertex]) addEnd(ends, graph.owner[outlet], ++at);
    at++;
  }
  return ends;
}

/**
 * @param {Ends} ends
 * @param {number} vertex
 * @param {number} at
 */
function addEnd(ends, vertex, at) {
  const list = ends.get(vertex);
  if (list) list.push(at);
  else ends.set(vertex, [at]);
}

/**
 * Sort each column by where its links end in the one sorted before it; `flip` turns ties over.
 * @param {Layered} graph
 * @param {boolean} leftward
 * @param {boolean} flip
 * @param {number} steps
 */
function sweepColumns(graph, leftward, flip, steps) {
  const { columns } = graph;
  const none = new Map();
  for (let turn = 1; turn < columns.length; turn++) {
    const at = leftward ? columns.length - 1 - turn : turn;
    const column = columns[at];
    if (column.length === 1) continue;
    const left = at > 0 && (steps || !leftward) ? endsBefore(graph, columns[at - 1]) : none;
    const right = at + 1 < columns.length && (steps || leftward) ? endsAfter(graph, columns[at + 1]) : none;
    const ends = leftward ? right : left;
    /** @type {Map<number, number>} */
    const key = new Map();
    for (const vertex of column) {
      const list = ends.get(vertex);
      if (list) key.set(vertex, meanOf(list));
    }
    followFellows(graph, column, key);
    if (flip) column.reverse();
    column.sort((one, two) => /** @type {number} */ (key.get(one)) - /** @type {number} */ (key.get(two)));
    swapNeighbours(column, left, right, steps * column.length);
  }
}

/**
 * Let a vertex without a key, such as a leaf, go with its fellow inputs, or with the one above it.
 * @param {Layered} graph
 * @param {number[]} column
 * @param {Map<number, number>} key
 */
function followFellows(graph, column, key) {
  if (key.size === column.length) return;
  /** @type {Ends} */
  const fellows = new Map();
  let above = Infinity;
  for (const [vertex, at] of key) {
    above = Math.min(above, at);
    for (const consumer of consumersOf(graph, vertex)) addEnd(fellows, consumer, at);
  }
  if (!key.size) above = 0;
  for (const vertex of column) {
    const own = key.get(vertex);
    if (own !== undefined) {
      above = own;
      continue;
    }
    const means = [];
    for (const consumer of consumersOf(graph, vertex)) {
      const ats = fellows.get(consumer);
      if (ats) means.push(meanOf(ats));
    }
    if (means.length) above = meanOf(means);
    key.set(vertex, above);
  }
}

/**
 * The mean, added up in order.
 * @param {number[]} numbers
 * @returns {number}
 */
function meanOf(numbers) {
  let total = 0;
  for (const number of numbers) total += number;
  return total / numbers.length;
}

/**
 * Exchange vertices next to each other where that removes crossings; step back after each exchange.
 * @param {number[]} column
 * @param {Ends} left
 * @param {Ends} right
 * @param {number} steps
 */
function swapNeighbours(column, left, right, steps) {
  let at = 0;
  for (; at < column.length - 1 && steps > 0; steps--) {
    const upper = column[at];
    const lower = column[at + 1];
    const gain = swapGain(left.get(upper), left.get(lower)) + swapGain(right.get(upper), right.get(lower));
    if (gain > 0) {
      column[at] = lower;
      column[at + 1] = upper;
    }
    at = gain > 0 ? Math.max(at - 1, 0) : at + 1;
  }
}

/**
 * How many crossings on one side go away if two vertices with these ends change places.
 * @param {number[] | undefined} upper
 * @param {number[] | undefined} lower
 * @returns {number}
 */
function swapGain(upper, lower) {
  return upper && lower ? pairsBelow(upper, lower) - pairsBelow(lower, upper) : 0;
}

/**
 * The number of pairs with the end from `some` below the end from `others`; both are sorted.
 * @param {number[]} some
 * @param {number[]} others
 * @returns {number}
 */
function pairsBelow(some, others) {
  if (some[some.length - 1] <= others[0]) return 0;
  let total = 0;
  let above = 0;
  for (const end of some) {
    while (above < others.length && others[above] < end) above++;
    total += above;
  }
  return total;
}
