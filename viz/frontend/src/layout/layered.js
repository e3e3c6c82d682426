/**
 * Layered layout of a computation graph: time flows to the right, and straight lines are preferred. Mirrors
 * minigrad_viz/layout/layered.py, function by function, and returns the same coordinates.
 *
 * The layered method of Sugiyama, Tagawa and Toda (1981), in five steps:
 *
 * 1. `rankNodes`    assign a column to each node: edges go to the right, and are short;
 * 2. `splitIntoLinks` give a value with distant consumers a *lane*: one dummy in each column that it crosses;
 * 3. `orderColumns` permute each column until few edges cross;
 * 4. `straighten`, `settleHeights`  choose the links to align, and a y coordinate for everything;
 * 5. `routeEdges`   convert each edge to a list of points.
 *
 * A vertex is a node or a dummy; a link joins vertices of adjacent columns. Nothing recurses.
 */

import { splitIntoLinks, rankNodes } from "./graph.js";
import { placePorts, settleHeights, chooseLevelLinks } from "./heights.js";
import { abs, floor, max, min, isInteger } from "../base/math.js";
import { orderColumns } from "./order.js";

/** @typedef {import("./graph.js").Edge} Edge */
/** @typedef {import("./graph.js").LayeredGraph} Layered */
/** @typedef {import("./graph.js").Point} Point */
/** @typedef {import("./graph.js").Ports} Ports */

/**
 * The positions of everything, in the unit of the sizes: x to the right, y down, (0, 0) the top left corner. `routes`
 * lead from the source's right side to the target's left side; they are level inside columns and slope only between
 * them.
 * @typedef {object} Layout
 * @property {number} width
 * @property {number} height
 * @property {Point[]} centers by node
 * @property {Point[][]} routes by edge
 * @property {number[]} ranks by node: its column
 */

const MAX_DUMMIES = 20000; // in all lanes together, or one for each node; longer lanes become express edges

/**
 * Lay out nodes 0, 1, ... with boxes of `sizes`, joined by `edges`.
 *
 * Nodes are in tape order, so an edge goes to a larger index. The edges into a node are its inputs in slot order; they
 * arrive at separate ports from top to bottom, and may repeat, as in a*a. The gap between columns is `gapX`, between
 * the boxes of a column `gapY`. Coordinates are rounded to 0.01. Throws RangeError for an edge that does not go forward
 * or names a missing node, and for a size that is negative or not finite.
 * @param {ArrayLike<Point>} sizes
 * @param {ArrayLike<Edge>} edges
 * @param {{gapX?: number, gapY?: number, ports?: Ports}} [options]
 * @returns {Layout}
 */
export function layout(sizes, edges, { gapX = 48, gapY = 16, ports = {} } = {}) {
  checkSizes(sizes);
  for (const [source, target] of Array.from(edges)) {
    if (!(source >= 0 && source < sizes.length && target >= 0 && target < sizes.length)) {
      throw new RangeError(`edge (${source}, ${target}) names a missing node: there are ${sizes.length} nodes`);
    }
    if (source >= target) {
      throw new RangeError(`edge (${source}, ${target}) points backward: expected nodes in tape order, inputs first`);
    }
  }
  const { width, height, centers, routes, ranks } = computeLayout(sizes, edges, gapX, gapY, ports);
  return {
    width: roundCoordinate(width),
    height: roundCoordinate(height),
    centers: centers.map(([x, y]) => [roundCoordinate(x), roundCoordinate(y)]),
    routes: routes.map(simplifyRoute),
    ranks,
  };
}

/**
 * Throw RangeError for a size that is negative or not finite.
 * @param {ArrayLike<Point>} sizes
 */
export function checkSizes(sizes) {
  for (let node = 0; node < sizes.length; node++) {
    const [width, height] = sizes[node];
    if (!(width >= 0 && width < Infinity && height >= 0 && height < Infinity)) {
      throw new RangeError(`node ${node} has size (${width}, ${height}); expected finite, non-negative values`);
    }
  }
}

/**
 * Lay out as `layout`, without checks and rounding; routes may have points in the middle of a level segment.
 * @param {ArrayLike<Point>} sizes
 * @param {ArrayLike<Edge>} edges
 * @param {number} gapX
 * @param {number} gapY
 * @param {Ports} ports
 * @returns {Layout}
 */
export function computeLayout(sizes, edges, gapX, gapY, ports) {
  const { rank, depth } = rankNodes(sizes.length, edges, ports);
  const graph = splitIntoLinks(edges, rank, depth, ports, max(MAX_DUMMIES, sizes.length));
  const { sweeps, swaps: swapSteps, moves: iterations } = effortFor(graph);
  graph.halfHeight = rank.map((_, vertex) => (vertex < sizes.length ? sizes[vertex][1] / 2 : 0));
  orderColumns(graph, sweeps, swapSteps);
  chooseLevelLinks(graph);
  placePorts(graph);
  return routeEdges(graph, sizes, settleHeights(graph, gapY, iterations), gapX, gapY);
}

/**
 * Choose the effort, less for larger graphs: the only place that enforces the viewer's time budgets.
 *
 * Return the number of sweeps from each start; for each start, the steps of `swapNeighbours` per vertex; the iterations
 * of `settleHeights`.
 * @param {Layered} graph
 * @returns {{sweeps: number, swaps: number[], moves: number}}
 */
function effortFor(graph) {
  const work = graph.incoming.reduce((sum, before) => sum + before.length, graph.rank.length) + 1;
  if (work > 40000) return { sweeps: 2, swaps: [0], moves: 4 };
  const more = floor(10000 / work);
  return { sweeps: 3 + min(20, more), swaps: [2, 10], moves: 10 + min(30, more) };
}

/**
 * Place the columns side by side, with the top at 0, and route each edge along its lane.
 * @param {Layered} graph
 * @param {ArrayLike<Point>} sizes
 * @param {number[]} y
 * @param {number} gapX
 * @param {number} gapY
 * @returns {Layout}
 */
function routeEdges(graph, sizes, y, gapX, gapY) {
  const { nodes, rank, wire, feeder } = graph;
  const sides = columnSides(graph, sizes, gapX);
  let [top, bottom] = y.length ? [Infinity, -Infinity] : [0, 0];
  y.forEach((at, vertex) => {
    top = min(top, at - graph.halfHeight[vertex]);
    bottom = max(bottom, at + graph.halfHeight[vertex]);
  });
  const express = [...new Set(wire.filter((_, edge) => feeder[edge] < 0))].sort((one, two) => one - two);
  const expressY = new Map(express.map((at, index) => [at, top - gapY * (1 + 0.6 * index)]));
  for (const expressHeight of expressY.values()) top = min(top, expressHeight);
  const x = Array.from({ length: nodes }, (_, node) => (sides[rank[node]][0] + sides[rank[node]][1]) / 2);
  const outletY = graph.owner.map((vertex, outlet) => y[vertex] + graph.leaveOffset[outlet]);
  const bends = graph.lane.map((lane) => laneBends(graph, lane, sides, outletY));
  const routes = Array.from(graph.edges, ([source, target], edge) => {
    const port = y[target] + graph.arrival[edge];
    const [leave, enter] = [sides[rank[source]][1], sides[rank[target]][0]];
    const start = outletY[graph.lane[wire[edge]][0]];
    /** @type {Point[]} */
    const points = [[x[source] + sizes[source][0] / 2, start]];
    if (feeder[edge] >= 0) {
      const { bend, counts } = bends[wire[edge]];
      for (let at = 0; at < counts[rank[target] - rank[source] - 1]; at++) points.push(bend[at]);
      points.push([sides[rank[target] - 1][1], outletY[feeder[edge]]]);
    } else {
      const high = expressY.get(wire[edge]) ?? top;
      points.push([leave, start], [leave + gapX / 2, high], [enter - gapX / 2, high]);
    }
    points.push([enter, port], [x[target] - sizes[target][0] / 2, port]);
    return points.map(([at, down]) => /** @type {Point} */ ([at, down - top]));
  });
  const centers = x.map((at, node) => /** @type {Point} */ ([at, y[node] - top]));
  const width = sides.length ? sides[sides.length - 1][1] : 0;
  return { width, height: bottom - top, centers, routes, ranks: rank.slice(0, nodes) };
}

/**
 * Return the left and right side of each column.
 * @param {Layered} graph
 * @param {ArrayLike<Point>} sizes
 * @param {number} gapX
 * @returns {Point[]}
 */
function columnSides(graph, sizes, gapX) {
  let right = -gapX;
  return graph.columns.map((column) => {
    const left = right + gapX;
    right = left + column.reduce((most, vertex) => (vertex < graph.nodes ? max(most, sizes[vertex][0]) : most), 0);
    return [left, right];
  });
}

/**
 * Return the points where a lane bends, and how many of them precede each of its outlets.
 * @param {Layered} graph
 * @param {number[]} lane
 * @param {Point[]} columnSides
 * @param {number[]} outletY
 * @returns {{bend: Point[], counts: number[]}}
 */
function laneBends(graph, lane, columnSides, outletY) {
  /** @type {Point[]} */
  const bend = [];
  const counts = [0];
  for (let at = 1; at < lane.length; at++) {
    const [start, end] = [lane[at - 1], lane[at]];
    if (outletY[start] !== outletY[end]) {
      bend.push([columnSides[graph.rank[graph.owner[start]]][1], outletY[start]], [columnSides[graph.rank[end]][0], outletY[end]]);
    }
    counts.push(bend.length);
  }
  return { bend, counts };
}

/**
 * Round points to 0.01, and remove repeated ones and those in the middle of a level segment.
 * @param {Point[]} points
 * @returns {Point[]}
 */
export function simplifyRoute(points) {
  /** @type {Point[]} */
  const simplified = [];
  for (const [x, y] of points) {
    const [atX, atY] = [roundCoordinate(x), roundCoordinate(y)];
    const count = simplified.length;
    if (count > 1 && simplified[count - 2][1] === atY && simplified[count - 1][1] === atY) simplified.pop();
    const end = simplified[simplified.length - 1];
    if (!end || end[0] !== atX || end[1] !== atY) simplified.push([atX, atY]);
  }
  return simplified;
}

/**
 * Round to two decimals, as Python's `round(x, 2)`: ties, which only occur at odd multiples of 1/8, round to even.
 * @param {number} x
 * @returns {number}
 */
export function roundCoordinate(x) {
  const low = floor(x * 100);
  const part = x * 100 - low;
  if (abs(part - 0.5) > 1e-4) return (part < 0.5 ? low : low + 1) / 100;
  if (isInteger(x * 8)) return (low % 2 ? low + 1 : low) / 100;
  return Number(x.toFixed(2));
}
