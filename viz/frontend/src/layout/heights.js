/**
 * Step 4 of `layout`: choose the links to align, and assign a y coordinate to everything. Mirrors
 * minigrad_viz/layout/heights.py, function by function.
 */

import { max, min } from "../base/math.js";

/** @typedef {import("./graph.js").LayeredGraph} Layered */
/** @typedef {Map<number, number>[]} Apart by row: the rows just below, and the minimum distance */
/** @typedef {{other: number[], down: number[]}[]} Pulls by row: the linked rows, and the offset below them */

/**
 * Choose the links to align: no two of them cross or share an end on the same side.
 *
 * Lanes take precedence, then the link from each node's deepest input, which carries the main line of the computation.
 * A node whose inputs have equal depth is left free between them, and so is a source between several consumers in one
 * column.
 * @param {Layered} graph
 */
export function chooseLevelLinks(graph) {
  const { nodes, owner, columns } = graph;
  graph.levelOutlet = new Array(graph.rank.length).fill(-1);
  const leftPosition = new Int32Array(graph.rank.length); // by vertex
  for (let column = 1; column < columns.length; column++) {
    columns[column - 1].forEach((vertex, at) => (leftPosition[vertex] = at));
    /** @type {{class: number, leftAt: number, rightAt: number, outlet: number}[]} */
    const candidates = [];
    columns[column].forEach((vertex, at) => {
      const outlet = mainInput(graph, vertex);
      if (outlet >= 0 && (vertex >= nodes || hasOneConsumer(graph, outlet))) {
        const dummies = Number(owner[outlet] >= nodes) + Number(vertex >= nodes);
        candidates.push({ class: [1, 2, 0][dummies], leftAt: leftPosition[owner[outlet]], rightAt: at, outlet });
      }
    });
    candidates.sort((a, b) => a.class - b.class || a.leftAt - b.leftAt || a.rightAt - b.rightAt);
    /** @type {{one: number, two: number}[]} */
    const chosen = [];
    for (const { leftAt, rightAt, outlet } of candidates) {
      let at = chosen.length;
      while (at > 0 && (chosen[at - 1].one > leftAt || (chosen[at - 1].one === leftAt && chosen[at - 1].two >= rightAt))) at--;
      const isClearAbove = at === 0 || (chosen[at - 1].one < leftAt && chosen[at - 1].two < rightAt);
      if (isClearAbove && (at === chosen.length || (leftAt < chosen[at].one && rightAt < chosen[at].two))) {
        chosen.splice(at, 0, { one: leftAt, two: rightAt });
        graph.levelOutlet[columns[column][rightAt]] = outlet;
      }
    }
  }
}

/**
 * Return the outlet of the deepest input of a vertex; -1 if there are several or none.
 * @param {Layered} graph
 * @param {number} vertex
 * @returns {number}
 */
function mainInput(graph, vertex) {
  let main = -1;
  let deepest = -1;
  for (const outlet of graph.incoming[vertex]) {
    if (graph.depth[outlet] > deepest) {
      deepest = graph.depth[outlet];
      main = outlet;
    } else if (graph.depth[outlet] === deepest && outlet !== main) {
      main = -1;
    }
  }
  return main;
}

/**
 * Whether the links from `outlet` end at one node, not counting dummies.
 * @param {Layered} graph
 * @param {number} outlet
 * @returns {boolean}
 */
function hasOneConsumer(graph, outlet) {
  const consumers = graph.outgoing[outlet].filter((to) => to < graph.nodes);
  return consumers.length > 0 && consumers.every((to) => to === consumers[0]);
}

/**
 * Place the ports of each node in slot order, an aligned input's at the centre, else all around the centre. Outlets are
 * sorted by where their links end, around the centre. Given offsets are kept.
 * @param {Layered} graph
 */
export function placePorts(graph) {
  placeOutlets(graph);
  graph.arrival = new Array(graph.edges.length).fill(0);
  graph.inputs.forEach((inputs, node) => {
    const mate = graph.levelOutlet[node];
    let levelSlots = 0;
    let slots = 0;
    inputs.forEach((edge, slot) => {
      if (mate < 0 || graph.feeder[edge] !== mate) return;
      levelSlots += 1;
      slots += slot;
    });
    const centre = levelSlots ? slots / levelSlots : (inputs.length - 1) / 2;
    const maxDistance = max(centre, inputs.length - 1 - centre);
    const step = maxDistance ? min(12, (0.8 * graph.halfHeight[node]) / maxDistance) : 0;
    inputs.forEach((edge, slot) => (graph.arrival[edge] = graph.givenArrival[edge] ?? (slot - centre) * step));
  });
}

/** @param {Layered} graph */
function placeOutlets(graph) {
  if (graph.owner.length === graph.rank.length) return;
  const sum = new Float64Array(graph.owner.length); // by outlet: sum of the positions where its links end
  const count = new Int32Array(graph.owner.length);
  let at = 0;
  for (const column of graph.columns) {
    for (const vertex of column) {
      for (const outlet of graph.incoming[vertex]) {
        sum[outlet] += at++;
        count[outlet] += 1;
      }
    }
  }
  const mean = Array.from(sum, (total, outlet) => (count[outlet] ? total / count[outlet] : -1));
  for (let node = 0; node < graph.nodes; node++) {
    const outlets = graph.outlets[node];
    if (outlets.length === 1 || !graph.freeNodes.has(node)) continue;
    const middle = (outlets.length - 1) / 2;
    const step = min(12, (0.8 * graph.halfHeight[node]) / middle);
    const sorted = [...outlets].sort((one, two) => mean[one] - mean[two]);
    sorted.forEach((outlet, place) => (graph.leaveOffset[outlet] = (place - middle) * step));
  }
}

/**
 * Return the y of each vertex. Vertices joined by aligned links form a row, like the blocks of Brandes and Köpf (2002).
 *
 * In each iteration a row moves halfway to the position where its links would be level on average; an input weighs as
 * much as three consumers, so that a node is centred between its inputs, as in a tree. Then rows are pushed apart, both
 * down and up: the mean of two placements that respect all distances respects them too, and so does their elementwise
 * minimum or maximum, which bounds the height of the drawing.
 * @param {Layered} graph
 * @param {number} gap
 * @param {number} iterations
 * @returns {number[]}
 */
export function settleHeights(graph, gap, iterations) {
  const { row, shift, count } = formRows(graph);
  const distances = rowDistances(graph, row, shift, count, gap);
  const pulls = rowPulls(graph, row, shift, count);
  const order = topDown(distances);
  const { highest, lowest } = rowBounds(graph, row, shift, distances, order);
  let y = highest.map((highestY, at) => (highestY + lowest[at]) / 2);
  for (let move = 0; move < iterations; move++) {
    const targets = y.map((at, index) => (pulls[index].other.length ? (at + pullOf(pulls[index], y)) / 2 : at));
    const pushedDown = pushDown(distances, order, targets);
    const pushedUp = pushUp(distances, order, targets);
    y = pushedDown.map((one, at) => min(max((one + pushedUp[at]) / 2, highest[at]), lowest[at]));
  }
  return row.map((at, vertex) => y[at] + shift[vertex]);
}

/**
 * Return the row of each vertex, and its offset below the row's y: 0 unless port offsets are given.
 * @param {Layered} graph
 * @returns {{row: number[], shift: number[], count: number}}
 */
function formRows(graph) {
  const row = new Array(graph.rank.length).fill(-1);
  const offset = new Array(graph.rank.length).fill(0);
  let count = 0;
  for (const column of graph.columns) {
    for (const vertex of column) {
      const outlet = graph.levelOutlet[vertex];
      if (outlet < 0) {
        row[vertex] = count++;
        continue;
      }
      const source = graph.owner[outlet];
      row[vertex] = row[source];
      offset[vertex] = offset[source] + graph.leaveOffset[outlet];
      const level = vertex < graph.nodes ? graph.inputs[vertex].find((edge) => graph.feeder[edge] === outlet) : undefined;
      if (level !== undefined) offset[vertex] -= graph.givenArrival[level] ?? 0;
    }
  }
  return { row, shift: offset, count };
}

/**
 * Return for each row the rows just below it, and the minimum distance.
 * @param {Layered} graph
 * @param {number[]} row
 * @param {number[]} shift
 * @param {number} count
 * @param {number} gap
 * @returns {Apart}
 */
function rowDistances(graph, row, shift, count, gap) {
  const { halfHeight, nodes } = graph;
  /** @type {Apart} */
  const distances = Array.from({ length: count }, () => new Map());
  for (const column of graph.columns) {
    for (let at = 1; at < column.length; at++) {
      const upper = column[at - 1];
      const lower = column[at];
      const space = upper < nodes && lower < nodes ? gap : 0.6 * gap;
      const distance = halfHeight[upper] + halfHeight[lower] + space + (shift[upper] - shift[lower]);
      const lowerRows = distances[row[upper]];
      lowerRows.set(row[lower], max(distance, lowerRows.get(row[lower]) ?? distance));
    }
  }
  return distances;
}

/**
 * Return for each row the rows linked to it, and the offset at which the link is level.
 * @param {Layered} graph
 * @param {number[]} row
 * @param {number[]} shift
 * @param {number} count
 * @returns {Pulls}
 */
function rowPulls(graph, row, shift, count) {
  /** @type {Pulls} */
  const pulls = Array.from({ length: count }, () => ({ other: [], down: [] }));
  /** @type {(outlet: number, vertex: number, port: number) => void} */
  const averagePull = (outlet, vertex, port) => {
    const source = graph.owner[outlet];
    const [start, end] = [row[source], row[vertex]];
    if (start === end) return;
    const down = port + (shift[vertex] - shift[source] - graph.leaveOffset[outlet]);
    pulls[end].other.push(start, start, start);
    pulls[end].down.push(-down, -down, -down);
    pulls[start].other.push(end);
    pulls[start].down.push(down);
  };
  for (let edge = 0; edge < graph.edges.length; edge++) {
    if (graph.feeder[edge] >= 0) averagePull(graph.feeder[edge], graph.edges[edge][1], graph.arrival[edge]);
  }
  for (const lane of graph.lane) for (let at = 1; at < lane.length; at++) averagePull(lane[at - 1], lane[at], 0);
  return pulls;
}

/**
 * Return the position at which the links of a row would be level on average.
 * @param {Pulls[number]} some
 * @param {number[]} y
 * @returns {number}
 */
function pullOf(some, y) {
  let total = 0;
  for (let at = 0; at < some.other.length; at++) total += y[some.other[at]] + some.down[at];
  return total / some.other.length;
}

/**
 * Return bounds on the y of each row: enough room to centre nodes, and little more. Next to a box with given ports,
 * which may be tall, other nodes can use its full height.
 * @param {Layered} graph
 * @param {number[]} row
 * @param {number[]} shift
 * @param {Apart} distances
 * @param {number[]} order
 * @returns {{highest: number[], lowest: number[]}}
 */
function rowBounds(graph, row, shift, distances, order) {
  let tallestHalf = 0;
  for (let node = 0; node < graph.nodes; node++) {
    if (graph.halfHeight[node] > tallestHalf && hasFixedPorts(graph, node)) tallestHalf = graph.halfHeight[node];
  }
  const slack = graph.halfHeight.map((half) => min(0, half - tallestHalf));
  const top = new Array(distances.length).fill(-Infinity);
  const bottom = new Array(distances.length).fill(Infinity);
  row.forEach((at, vertex) => (top[at] = max(top[at], slack[vertex] - shift[vertex])));
  const highest = pushDown(distances, order, top);
  let maxY = row.length ? -Infinity : 0;
  row.forEach((at, vertex) => (maxY = max(maxY, highest[at] + shift[vertex] + slack[vertex])));
  maxY *= 1.3;
  row.forEach((at, vertex) => (bottom[at] = min(bottom[at], maxY - slack[vertex] - shift[vertex])));
  return { highest, lowest: pushUp(distances, order, bottom) };
}

/**
 * @param {Layered} graph
 * @param {number} node
 * @returns {boolean}
 */
function hasFixedPorts(graph, node) {
  return (
    graph.outlets[node].some((outlet) => graph.leaveOffset[outlet] !== 0) ||
    graph.inputs[node].some((edge) => graph.givenArrival[edge] !== null)
  );
}

/**
 * Sort the rows topologically, each after those above it. Aligned links never cross, so "above" has no cycles.
 * @param {Apart} distances
 * @returns {number[]}
 */
function topDown(distances) {
  const inDegree = new Int32Array(distances.length);
  for (const lowers of distances) for (const lower of lowers.keys()) inDegree[lower] += 1;
  /** @type {number[]} */
  const order = [];
  inDegree.forEach((count, row) => {
    if (!count) order.push(row);
  });
  for (const row of order) {
    for (const lower of distances[row].keys()) if (--inDegree[lower] === 0) order.push(lower);
  }
  return order;
}

/**
 * Return the smallest y of each row, at least `targets`, that respect all distances.
 * @param {Apart} distances
 * @param {number[]} order
 * @param {number[]} targets
 * @returns {number[]}
 */
function pushDown(distances, order, targets) {
  const y = targets.slice();
  for (const row of order) for (const [lower, distance] of distances[row]) y[lower] = max(y[lower], y[row] + distance);
  return y;
}

/**
 * Return the largest y of each row, at most `targets`, that respect all distances.
 * @param {Apart} distances
 * @param {number[]} order
 * @param {number[]} targets
 * @returns {number[]}
 */
function pushUp(distances, order, targets) {
  const y = targets.slice();
  for (let at = order.length - 1; at >= 0; at--) {
    for (const [lower, distance] of distances[order[at]]) y[order[at]] = min(y[order[at]], y[lower] - distance);
  }
  return y;
}
