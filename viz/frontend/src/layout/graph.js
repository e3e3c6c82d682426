/**
 * The first two steps of `layout`: a column for each node, and a lane for each value that is used far away.
 * Mirrors minigrad_viz/layout/graph.py, function by function.
 *
 * An *outlet* is where links leave the right side of a vertex. A node has one for each of its wires, from top to
 * bottom, the first numbered as the node itself; a dummy is its own.
 */

import { max, min } from "../base/math.js";

/** @typedef {[number, number]} Point x and y, or width and height */
/** @typedef {[number, number]} Edge the source and the target */

/**
 * Where edges leave and arrive, if it is not the middle of the right side and, in slot order, the left one.
 * A *wire* carries one value: its edges leave one node at one height, and share a lane. A node in `first`, which
 * has no inputs, stands alone with its like in the first column; one in `last`, without consumers, in the last.
 * @typedef {object} Ports
 * @property {ArrayLike<number>} [wires] by edge, any number that tells the wires of a node apart; else by source
 * @property {ArrayLike<number | null>} [leave] by edge, how far below the centre of its source it leaves; else the
 *   wires of a box leave about its middle
 * @property {ArrayLike<number | null>} [arrive] by edge, how far below the centre of its target it arrives; either
 *   for all inputs of a node or for none
 * @property {Map<number, number>} [first] these nodes, with the depth of what they stand for
 * @property {Set<number>} [last]
 */

/**
 * The graph cut into links. Vertices below `nodes` are nodes, the others dummies.
 * @typedef {object} Layered
 * @property {number} nodes
 * @property {ArrayLike<Edge>} edges
 * @property {number[]} rank by vertex: its column
 * @property {number[]} depth by outlet: the longest way to its node from a leaf, in edges
 * @property {number[][]} inputs by node: the edges that arrive, from top to bottom
 * @property {(number | null)[]} arrive by edge: how far below its target's centre it arrives, if that is given
 * @property {number[]} wire by edge: its wire
 * @property {number[][]} lane by wire: the outlets from which it goes on, from left to right
 * @property {number[][]} outlets by vertex: its outlets, from top to bottom
 * @property {number[]} owner by outlet: its vertex
 * @property {Set<number>} loose the nodes of which it is not given how far below their centre wires leave
 * @property {number[]} leave by outlet: how far below the centre of its vertex it is
 * @property {number[]} feeder by edge: its last outlet before the target, or -1
 * @property {number[][]} before by vertex: the outlets whose links arrive, in order
 * @property {number[][]} after by outlet: the vertices where its links end
 * @property {number[]} half by vertex: half its height
 * @property {number[][]} columns from top to bottom
 * @property {number[]} mate by vertex: the outlet before that is level with it, or -1
 * @property {number[]} port by edge: how far below its target's centre it arrives
 */

/**
 * The vertices of the next column to which `vertex` is linked.
 * @param {Layered} graph
 * @param {number} vertex
 * @returns {number[]}
 */
export function consumersOf(graph, vertex) {
  const outlets = graph.outlets[vertex];
  return outlets.length === 1 ? graph.after[vertex] : outlets.flatMap((outlet) => graph.after[outlet]);
}

/**
 * The column of each node, and its depth.
 *
 * A node starts in the column of its depth, then moves right as long as that stretches no more edges than it
 * shortens; so a leaf stands just before its first consumer. Gansner et al. (1993) find the optimum by
 * network simplex; this is one pass, exact where inputs form a tree.
 * @param {number} nodes
 * @param {ArrayLike<Edge>} edges
 * @param {Ports} ports
 * @returns {{rank: number[], depth: number[]}}
 */
export function rankNodes(nodes, edges, ports) {
  const first = ports.first ?? new Map();
  const pinned = ports.last ?? new Set();
  /** @type {number[][]} */
  const before = Array.from({ length: nodes }, () => []);
  /** @type {number[][]} */
  const after = Array.from({ length: nodes }, () => []);
  for (let edge = 0; edge < edges.length; edge++) {
    const [source, target] = edges[edge];
    before[target].push(source);
    after[source].push(target);
  }
  const shared = after.map((targets) => targets.some((target) => target !== targets[0]));
  const depth = Array.from({ length: nodes }, (_, node) => first.get(node) ?? 0);
  const start = Number(first.size > 0);
  const rank = Array.from({ length: nodes }, (_, node) => (first.has(node) ? 0 : start));
  // How many edges grow if the node moves right and takes along what only it uses. An edge of its own costs
  // more than one from a shared value, which often has a lane there already.
  const stretch = new Array(nodes).fill(0);
  let last = 0;
  for (let node = 0; node < nodes; node++) {
    for (const source of before[node]) {
      depth[node] = max(depth[node], 1 + depth[source]);
      rank[node] = max(rank[node], 1 + rank[source]);
      stretch[node] += shared[source] ? 1 : min(1.5, stretch[source]);
    }
    if (!pinned.has(node)) last = max(last, 1 + rank[node]);
  }
  for (const node of pinned) rank[node] = last;
  for (let node = nodes - 1; node >= 0; node--) {
    if (after[node].length && after[node].length >= stretch[node] && !first.has(node)) {
      rank[node] = after[node].reduce((least, target) => min(least, rank[target]), Infinity) - 1;
    }
  }
  return { rank, depth };
}

/**
 * Cut every edge into links, by way of the lane of its wire; all lanes together have at most `dummies`.
 * @param {ArrayLike<Edge>} edges
 * @param {number[]} rank
 * @param {number[]} depth
 * @param {Ports} ports
 * @param {number} dummies
 * @returns {Layered}
 */
export function cutIntoLinks(edges, rank, depth, ports, dummies) {
  const { wire, wires } = numberWires(edges, ports);
  const nodes = rank.length;
  const last = new Array(wires.length).fill(-1); // the column of each wire's last consumer
  for (let edge = 0; edge < edges.length; edge++) last[wire[edge]] = max(last[wire[edge]], rank[edges[edge][1]]);
  const lane = wires.map(({ node }) => [node]);
  const length = wires.map(({ node }, at) => last[at] - rank[node] - 1);
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
  const leave = new Array(rank.length).fill(0);
  const outlets = owner.map((vertex) => [vertex]);
  wires.forEach(({ node, below }, at) => {
    if (at && wires[at - 1].node === node) {
      lane[at][0] = owner.length;
      outlets[node].push(owner.length);
      owner.push(node);
      depth.push(depth[node]);
      leave.push(below);
    } else {
      leave[node] = below;
    }
  });
  const arrive = ports.arrive ? Array.from(ports.arrive) : new Array(edges.length).fill(null);
  /** @type {number[][]} */
  const inputs = Array.from({ length: nodes }, () => []);
  const loose = new Set(Array.from(edges, ([node], edge) => (ports.leave?.[edge] == null ? node : -1)));
  /** @type {Layered} */
  const graph = {
    nodes, edges, rank, depth, inputs, arrive, wire, lane, outlets, owner, loose, leave,
    feeder: [], before: [], after: [], half: [], columns: [], mate: [], port: [],
  };
  linkVertices(graph);
  return graph;
}

/**
 * The wire of each edge; and of each wire its node and how far below the centre it leaves, from top to bottom.
 * @param {ArrayLike<Edge>} edges
 * @param {Ports} ports
 * @returns {{wire: number[], wires: {node: number, below: number}[]}}
 */
function numberWires(edges, ports) {
  const keys = Array.from(edges, ([node], edge) => ({
    edge, node, below: ports.leave?.[edge] ?? 0, name: ports.wires ? ports.wires[edge] : node,
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
 * Fill in which edges and links arrive where.
 * @param {Layered} graph
 */
function linkVertices(graph) {
  const { rank, edges, inputs, feeder } = graph;
  graph.before = rank.map(() => []);
  for (const lane of graph.lane) {
    for (let at = 1; at < lane.length; at++) graph.before[lane[at]].push(lane[at - 1]);
  }
  for (let edge = 0; edge < edges.length; edge++) {
    const [source, target] = edges[edge];
    const step = rank[target] - rank[source];
    const lane = graph.lane[graph.wire[edge]];
    feeder.push(step <= lane.length ? lane[step - 1] : -1);
    inputs[target].push(edge);
  }
  inputs.forEach((arriving, node) => {
    if (arriving.length && graph.arrive[arriving[0]] !== null) {
      arriving.sort((one, two) => (graph.arrive[one] ?? 0) - (graph.arrive[two] ?? 0));
    }
    for (const edge of arriving) if (feeder[edge] >= 0) graph.before[node].push(feeder[edge]);
  });
  graph.after = graph.owner.map(() => []);
  graph.before.forEach((feeders, vertex) => {
    for (const outlet of feeders) graph.after[outlet].push(vertex);
  });
}
