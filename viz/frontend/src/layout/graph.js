/**
 * Steps 1 and 2 of `layout`: assign a column to each node, and a lane to each value with distant consumers. Mirrors
 * minigrad_viz/layout/graph.py, function by function.
 *
 * An *outlet* is the point where links leave the right side of a vertex. A node has one for each of its wires, from top
 * to bottom, the first with the same number as the node; a dummy is its own outlet.
 */

import { max, min } from "../base/math.js";

/** @typedef {[number, number]} Point (x, y), or (width, height) */
/** @typedef {[number, number]} Edge source and target */

/**
 * Positions where edges leave and arrive, if not the middle of the right side and, in slot order, the left side. A
 * *wire* carries one value: its edges leave a node at the same height, and share a lane. A node in `first`, which has
 * no inputs, is in the first column with only such nodes; one in `last`, without consumers, in the last column.
 * @typedef {object} Ports
 * @property {ArrayLike<number>} [wires] by edge, a number that distinguishes the wires of a node; by default one wire per source
 * @property {ArrayLike<number | null>} [leaveOffset] by edge, its offset below the centre of its source; by default the
 *   wires of a box leave around its middle
 * @property {ArrayLike<number | null>} [arriveOffset] by edge, its offset below the centre of its target; either
 *   for all inputs of a node or for none
 * @property {Map<number, number>} [first] these nodes, with the depths of the values they represent
 * @property {Set<number>} [last]
 */

/**
 * The graph split into links. Vertices below `nodes` are nodes, the others dummies.
 * @typedef {object} LayeredGraph
 * @property {number} nodes
 * @property {ArrayLike<Edge>} edges
 * @property {number[]} rank by vertex: its column
 * @property {number[]} depth by outlet: longest path to its node from a leaf, in edges
 * @property {number[][]} inputs by node: the edges that arrive, from top to bottom
 * @property {(number | null)[]} givenArrival by edge: the given offset below its target's centre
 * @property {number[]} wire by edge: its wire
 * @property {number[][]} lane by wire: its outlets, from left to right
 * @property {number[][]} outlets by vertex: its outlets, from top to bottom
 * @property {number[]} owner by outlet: its vertex
 * @property {Set<number>} freeNodes nodes whose wires have no given offsets
 * @property {number[]} leaveOffset by outlet: its offset below the centre of its vertex
 * @property {number[]} feeder by edge: its last outlet before the target, or -1
 * @property {number[][]} incoming by vertex: the outlets whose links arrive, in order
 * @property {number[][]} outgoing by outlet: the vertices where its links end
 * @property {number[]} halfHeight by vertex: half its height
 * @property {number[][]} columns from top to bottom
 * @property {number[]} levelOutlet by vertex: the preceding outlet aligned with it, or -1
 * @property {number[]} arrival by edge: its offset below the centre of its target
 */

/**
 * Return the vertices of the next column to which `vertex` is linked.
 * @param {LayeredGraph} graph
 * @param {number} vertex
 * @returns {number[]}
 */
export function consumersOf(graph, vertex) {
  const outlets = graph.outlets[vertex];
  return outlets.length === 1 ? graph.outgoing[vertex] : outlets.flatMap((outlet) => graph.outgoing[outlet]);
}

/**
 * Assign a column and a depth to each node.
 *
 * A node starts in the column of its depth, then moves right while that lengthens no more edges than it shortens; so a
 * leaf is just before its first consumer. Gansner et al. (1993) find the optimum by network simplex; this is one pass,
 * exact where inputs form a tree.
 * @param {number} nodes
 * @param {ArrayLike<Edge>} edges
 * @param {Ports} ports
 * @returns {{rank: number[], depth: number[]}}
 */
export function rankNodes(nodes, edges, ports) {
  const first = ports.first ?? new Map();
  const pinned = ports.last ?? new Set();
  /** @type {number[][]} */
  const sourcesOf = Array.from({ length: nodes }, () => []);
  /** @type {number[][]} */
  const targetsOf = Array.from({ length: nodes }, () => []);
  for (let edge = 0; edge < edges.length; edge++) {
    const [source, target] = edges[edge];
    sourcesOf[target].push(source);
    targetsOf[source].push(target);
  }
  const isShared = targetsOf.map((targets) => targets.some((target) => target !== targets[0]));
  const depth = Array.from({ length: nodes }, (_, node) => first.get(node) ?? 0);
  const firstColumn = Number(first.size > 0);
  const rank = Array.from({ length: nodes }, (_, node) => (first.has(node) ? 0 : firstColumn));
  // How many edges lengthen if the node moves right together with the inputs that only it uses. Its own edge costs
  // more than one from a shared value, which often has a lane there already.
  const lengthened = new Array(nodes).fill(0);
  let last = 0;
  for (let node = 0; node < nodes; node++) {
    for (const source of sourcesOf[node]) {
      depth[node] = max(depth[node], 1 + depth[source]);
      rank[node] = max(rank[node], 1 + rank[source]);
      lengthened[node] += isShared[source] ? 1 : min(1.5, lengthened[source]);
    }
    if (!pinned.has(node)) last = max(last, 1 + rank[node]);
  }
  for (const node of pinned) rank[node] = last;
  for (let node = nodes - 1; node >= 0; node--) {
    if (targetsOf[node].length && targetsOf[node].length >= lengthened[node] && !first.has(node)) {
      rank[node] = targetsOf[node].reduce((least, target) => min(least, rank[target]), Infinity) - 1;
    }
  }
  return { rank, depth };
}

/**
 * Split every edge into links along the lane of its wire; all lanes together have at most `dummies` dummies.
 * @param {ArrayLike<Edge>} edges
 * @param {number[]} rank
 * @param {number[]} depth
 * @param {Ports} ports
 * @param {number} dummies
 * @returns {LayeredGraph}
 */
export function splitIntoLinks(edges, rank, depth, ports, dummies) {
  const { wire, wires } = numberWires(edges, ports);
  const nodes = rank.length;
  const last = new Array(wires.length).fill(-1); // column of each wire's last consumer
  for (let edge = 0; edge < edges.length; edge++) last[wire[edge]] = max(last[wire[edge]], rank[edges[edge][1]]);
  const lane = wires.map(({ node }) => [node]);
  const length = wires.map(({ node }, wireIndex) => last[wireIndex] - rank[node] - 1);
  for (const at of wires.map((_, index) => index).sort((one, two) => length[one] - length[two])) {
    if (length[at] <= 0 || length[at] > dummies) continue;
    const { node } = wires[at];
    dummies -= length[at];
    for (let column = rank[node] + 1; column < last[at]; column++) {
      lane[at].push(rank.length);
      rank.push(column);
      depth.push(depth[node]);
    }
  }
  const owner = rank.map((_, vertex) => vertex);
  const leaveOffset = new Array(rank.length).fill(0);
  const outlets = owner.map((vertex) => [vertex]);
  wires.forEach(({ node, below }, at) => {
    if (at && wires[at - 1].node === node) {
      lane[at][0] = owner.length;
      outlets[node].push(owner.length);
      owner.push(node);
      depth.push(depth[node]);
      leaveOffset.push(below);
    } else {
      leaveOffset[node] = below;
    }
  });
  const givenArrival = ports.arriveOffset ? Array.from(ports.arriveOffset) : new Array(edges.length).fill(null);
  /** @type {number[][]} */
  const inputs = Array.from({ length: nodes }, () => []);
  const freeNodes = new Set(Array.from(edges, ([node], edge) => (ports.leaveOffset?.[edge] == null ? node : -1)));
  /** @type {LayeredGraph} */
  const graph = {
    nodes, edges, rank, depth, inputs, givenArrival, wire, lane, outlets, owner, freeNodes, leaveOffset,
    feeder: [], incoming: [], outgoing: [], halfHeight: [], columns: [], levelOutlet: [], arrival: [],
  };
  linkVertices(graph);
  return graph;
}

/**
 * Number the wires: return the wire of each edge, and for each wire its node and its offset, from top to bottom.
 * @param {ArrayLike<Edge>} edges
 * @param {Ports} ports
 * @returns {{wire: number[], wires: {node: number, below: number}[]}}
 */
function numberWires(edges, ports) {
  const keys = Array.from(edges, ([node], edge) => ({
    edge, node, below: ports.leaveOffset?.[edge] ?? 0, name: ports.wires ? ports.wires[edge] : node,
  }));
  /** @type {number[]} */
  const wire = new Array(edges.length);
  /** @type {{node: number, below: number, name: number}[]} */
  const wires = [];
  for (const key of keys.sort((a, b) => a.node - b.node || a.below - b.below || a.name - b.name)) {
    const top = wires.at(-1);
    if (!top || top.node !== key.node || top.below !== key.below || top.name !== key.name) wires.push(key);
    wire[key.edge] = wires.length - 1;
  }
  return { wire, wires };
}

/**
 * Fill in the incoming edges and links of each vertex.
 * @param {LayeredGraph} graph
 */
function linkVertices(graph) {
  const { rank, edges, inputs, feeder } = graph;
  graph.incoming = rank.map(() => []);
  for (const lane of graph.lane) {
    for (let at = 1; at < lane.length; at++) graph.incoming[lane[at]].push(lane[at - 1]);
  }
  for (let edge = 0; edge < edges.length; edge++) {
    const [source, target] = edges[edge];
    const step = rank[target] - rank[source];
    const lane = graph.lane[graph.wire[edge]];
    feeder.push(step <= lane.length ? lane[step - 1] : -1);
    inputs[target].push(edge);
  }
  inputs.forEach((arriving, node) => {
    if (arriving.length && graph.givenArrival[arriving[0]] !== null) {
      arriving.sort((one, two) => (graph.givenArrival[one] ?? 0) - (graph.givenArrival[two] ?? 0));
    }
    for (const edge of arriving) if (feeder[edge] >= 0) graph.incoming[node].push(feeder[edge]);
  });
  graph.outgoing = graph.owner.map(() => []);
  graph.incoming.forEach((feeders, vertex) => {
    for (const outlet of feeders) graph.outgoing[outlet].push(vertex);
  });
}
