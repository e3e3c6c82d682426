/**
 * Step 3 of `layout`: permute each column until few links cross. Mirrors minigrad_viz/layout/order.py, function by
 * function.
 */

import { consumersOf } from "./graph.js";
import { max, min } from "../base/math.js";

/** @typedef {import("./graph.js").LayeredGraph} Layered */
/**
 * The positions in an adjacent column where the links of a column's vertices end, in order: those of vertex v are
 * `places[start[v]]` to `places[stop[v] - 1]`.
 * @typedef {{start: Int32Array, stop: Int32Array, places: Int32Array}} Ends
 */

/**
 * Permute the columns so that few links cross: sweep left and right alternately, and keep the best order found.
 *
 * A vertex moves to the mean position of its neighbours, as in Sugiyama et al. (1981); then adjacent vertices of a
 * column are swapped, as in Gansner et al. (1993). No single start suits all graphs: a walk back from the outputs has
 * no crossings for an expression tree, tape order suits many similar samples. Each start ends after six sweeps without
 * progress.
 * @param {Layered} graph
 * @param {number} sweeps
 * @param {number[]} swapSteps
 */
export function orderColumns(graph, sweeps, swapSteps) {
  const walkOrder = backwardWalk(graph);
  const buffers = { left: emptyEnds(graph), right: emptyEnds(graph), key: new Float64Array(graph.rank.length) };
  const starts = [walkOrder, walkOrder.map((column) => [...column].sort((one, two) => one - two))].slice(0, swapSteps.length);
  let fewest = Infinity;
  let order = walkOrder;
  for (let startIndex = 0; startIndex < starts.length && fewest > 0; startIndex++) {
    graph.columns = starts[startIndex];
    let best = { crossings: countCrossings(graph), sweep: 0, columns: copyColumns(graph) };
    for (let sweep = 1; sweep <= sweeps && best.crossings > 0 && sweep <= best.sweep + 6; sweep++) {
      sweepColumns(graph, (sweep + startIndex) % 2 === 1, startIndex === 0 && sweep % 4 > 1, swapSteps[startIndex], buffers);
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
 * Allocate ends for any column.
 * @param {Layered} graph
 * @returns {Ends}
 */
function emptyEnds(graph) {
  const links = graph.incoming.reduce((sum, before) => sum + before.length, 0);
  const vertices = graph.rank.length;
  return { start: new Int32Array(vertices), stop: new Int32Array(vertices), places: new Int32Array(links) };
}

/**
 * @param {Layered} graph
 * @returns {number[][]}
 */
function copyColumns(graph) {
  return graph.columns.map((column) => column.slice());
}

/**
 * Return the columns in the order in which a walk back from the outputs visits their vertices.
 * @param {Layered} graph
 * @returns {number[][]}
 */
function backwardWalk(graph) {
  /** @type {number[][]} */
  const columns = [];
  for (const rank of graph.rank) while (columns.length <= rank) columns.push([]);
  const visited = new Uint8Array(graph.rank.length);
  const stack = [];
  for (let vertex = graph.rank.length - 1; vertex >= 0; vertex--) {
    if (!consumersOf(graph, vertex).length) stack.push(vertex);
  }
  for (let vertex = stack.pop(); vertex !== undefined; vertex = stack.pop()) {
    if (visited[vertex]) continue;
    visited[vertex] = 1;
    columns[graph.rank[vertex]].push(vertex);
    const before = graph.incoming[vertex];
    for (let at = before.length - 1; at >= 0; at--) stack.push(graph.owner[before[at]]);
  }
  return columns;
}

/**
 * Count the crossing pairs of links, in O(E log V): Barth, Jünger and Mutzel (2002).
 *
 * Read a column from top to bottom, port by port, and list the origin of each link: a crossing is an inversion. So
 * inputs of one node that arrive at each other's port cross too.
 * @param {Layered} graph
 * @returns {number}
 */
export function countCrossings(graph) {
  let total = 0;
  const position = new Int32Array(graph.owner.length); // by outlet
  const tree = new Int32Array(graph.owner.length + 1);
  const origins = new Int32Array(graph.wire.length + graph.rank.length); // at least the number of links
  for (let right = 1; right < graph.columns.length; right++) {
    let count = 0;
    for (const vertex of graph.columns[right - 1]) for (const outlet of graph.outlets[vertex]) position[outlet] = ++count;
    if (count < 2) continue;
    let ordered = true;
    let linkCount = 0;
    for (const vertex of graph.columns[right]) {
      for (const outlet of graph.incoming[vertex]) {
        if (linkCount && origins[linkCount - 1] > position[outlet]) ordered = false;
        origins[linkCount++] = position[outlet];
      }
    }
    if (!ordered) total += countInversions(origins.subarray(0, linkCount), tree.subarray(0, count + 1).fill(0));
  }
  return total;
}

/**
 * Count the inversions.
 * @param {Int32Array} origins
 * @param {Int32Array} tree a Fenwick tree: counts of the origins so far
 * @returns {number}
 */
function countInversions(origins, tree) {
  let total = 0;
  for (let met = 0; met < origins.length; met++) {
    total += met;
    for (let below = origins[met]; below > 0; below &= below - 1) total -= tree[below];
    for (let at = origins[met]; at < tree.length; at += at & -at) tree[at] += 1;
  }
  return total;
}

/**
 * Fill in, for each vertex of `column`, the positions of the outlets in the preceding column `fixed` where its links
 * end.
 * @param {Layered} graph
 * @param {number[]} column
 * @param {number[] | null} fixed null: ignore the links
 * @param {Ends} ends output
 */
function positionsBefore(graph, column, fixed, { start, stop, places }) {
  let links = 0;
  for (const vertex of column) {
    start[vertex] = stop[vertex] = links;
    links += graph.incoming[vertex].length;
  }
  let at = 0;
  for (const vertex of fixed ?? []) {
    for (const outlet of graph.outlets[vertex]) {
      for (const target of graph.outgoing[outlet]) places[stop[target]++] = at;
      at++;
    }
  }
}

/**
 * Fill in, for each vertex of `column`, the positions of the ports in the following column `fixed` where its links end.
 * @param {Layered} graph
 * @param {number[]} column
 * @param {number[] | null} fixed null: ignore the links
 * @param {Ends} ends output
 */
function positionsAfter(graph, column, fixed, { start, stop, places }) {
  let links = 0;
  for (const vertex of column) {
    start[vertex] = stop[vertex] = links;
    links += consumersOf(graph, vertex).length;
  }
  let at = 0;
  for (const vertex of fixed ?? []) {
    for (const outlet of graph.incoming[vertex]) places[stop[graph.owner[outlet]]++] = ++at;
    at++;
  }
}

/**
 * Sort each column by where its links end in the previously sorted column; `reverseTies` reverses ties.
 * @param {Layered} graph
 * @param {boolean} isLeftward
 * @param {boolean} reverseTies
 * @param {number} steps
 * @param {{left: Ends, right: Ends, key: Float64Array}} room scratch buffers
 */
function sweepColumns(graph, isLeftward, reverseTies, steps, { left, right, key }) {
  const { columns } = graph;
  for (let step = 1; step < columns.length; step++) {
    const at = isLeftward ? columns.length - 1 - step : step;
    const column = columns[at];
    if (column.length === 1) continue;
    positionsBefore(graph, column, at > 0 && (steps || !isLeftward) ? columns[at - 1] : null, left);
    positionsAfter(graph, column, at + 1 < columns.length && (steps || isLeftward) ? columns[at + 1] : null, right);
    const { start, stop, places } = isLeftward ? right : left;
    for (const vertex of column) {
      let sum = 0;
      for (let end = start[vertex]; end < stop[vertex]; end++) sum += places[end];
      key[vertex] = sum / (stop[vertex] - start[vertex]); // NaN if there are none
    }
    assignMissingKeys(graph, column, key);
    if (reverseTies) column.reverse();
    if (column.some((vertex, index) => index && key[vertex] < key[column[index - 1]])) {
      column.sort((one, two) => key[one] - key[two]);
    }
    swapNeighbours(column, left, right, steps * column.length);
  }
}

/**
 * Give a vertex without a key, such as a leaf, the mean key of its fellow inputs, or that of the vertex above.
 * @param {Layered} graph
 * @param {number[]} column
 * @param {Float64Array} key by vertex, NaN for none
 */
function assignMissingKeys(graph, column, key) {
  if (!column.some((vertex) => Number.isNaN(key[vertex]))) return;
  /** @type {Map<number, number[]>} */
  const fellowPositions = new Map();
  let above = Infinity;
  for (const vertex of column) {
    const at = key[vertex];
    if (Number.isNaN(at)) continue;
    above = min(above, at);
    for (const consumer of consumersOf(graph, vertex)) {
      const positions = fellowPositions.get(consumer);
      if (positions) positions.push(at);
      else fellowPositions.set(consumer, [at]);
    }
  }
  if (above === Infinity) above = 0;
  for (const vertex of column) {
    if (Number.isNaN(key[vertex])) {
      const means = [];
      for (const consumer of consumersOf(graph, vertex)) {
        const ats = fellowPositions.get(consumer);
        if (ats) means.push(meanOf(ats));
      }
      key[vertex] = means.length ? meanOf(means) : above;
    }
    above = key[vertex];
  }
}

/**
 * Return the mean, summed in order.
 * @param {number[]} numbers
 * @returns {number}
 */
function meanOf(numbers) {
  let total = 0;
  for (const number of numbers) total += number;
  return total / numbers.length;
}

/**
 * Swap adjacent vertices if that removes crossings; step back after each swap.
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
    const gain =
      countPairsBelow(left, upper, lower) - countPairsBelow(left, lower, upper) +
      countPairsBelow(right, upper, lower) - countPairsBelow(right, lower, upper);
    if (gain > 0) {
      column[at] = lower;
      column[at + 1] = upper;
    }
    at = gain > 0 ? max(at - 1, 0) : at + 1;
  }
}

/**
 * Count the pairs with the end from vertex `one` below the end from vertex `two`.
 * @param {Ends} ends
 * @param {number} one
 * @param {number} two
 * @returns {number}
 */
function countPairsBelow({ start, stop, places }, one, two) {
  if (start[one] === stop[one] || start[two] === stop[two] || places[stop[one] - 1] <= places[start[two]]) return 0;
  let total = 0;
  let above = start[two];
  for (let end = start[one]; end < stop[one]; end++) {
    while (above < stop[two] && places[above] < places[end]) above++;
    total += above - start[two];
  }
  return total;
}
