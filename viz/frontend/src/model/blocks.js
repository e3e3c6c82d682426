/**
 * The visible part of a graph in which some blocks are open and the others are drawn as single boxes
 * (minigrad_viz/trace/blocks.py creates the blocks). The set of open blocks may contain blocks inside closed ones: they
 * keep their state until their outer block opens again.
 */

/** @typedef {import("../base/types.js").Graph} Graph */

/**
 * A node or a closed block, and the open block around it. Either `node` or `block` is -1.
 * @typedef {{id: string, node: number, block: number, parent: number}} Item
 */

/**
 * An arrow: `from` and `to` index `items`, `value` is the node whose value flows over it, `edges` are all the edges
 * that it represents. Into a node each edge has an arrow, so both of a*a are shown; into a closed block there is one
 * per value, and from another closed block a single one for all values, whose `value` is -1.
 * @typedef {{from: number, to: number, value: number, edges: number[]}} Wire
 */

/**
 * Items are in tape order; a block takes the position of its first node.
 * @typedef {{items: Item[], wires: Wire[], itemOf: (node: number) => number}} Visible
 */

/**
 * Compute the visible items and wires. Block 0 counts as open.
 * @param {Graph} graph @param {ReadonlySet<number>} expanded @returns {Visible}
 */
export function visibleItems(graph, expanded) {
  const cover = outermostClosed(graph, expanded);
  const itemOf = new Int32Array(graph.count);
  const itemOfBlock = new Int32Array(graph.blocks.length).fill(-1);
  /** @type {Item[]} */
  const items = [];
  for (let node = 0; node < graph.count; node += 1) {
    const block = cover[graph.block[node]];
    if (block < 0) {
      itemOf[node] = items.length;
      items.push({ id: `n${node}`, node, block: -1, parent: graph.block[node] });
      continue;
    }
    if (itemOfBlock[block] < 0) {
      itemOfBlock[block] = items.length;
      items.push({ id: `b${block}`, node: -1, block, parent: graph.blocks[block].outer });
    }
    itemOf[node] = itemOfBlock[block];
  }
  return { items, wires: wiresBetween(graph, items, itemOf), itemOf: (node) => itemOf[node] };
}

/**
 * Return for each block the outermost closed block around it, itself included; -1 if there is none.
 * @param {Graph} graph @param {ReadonlySet<number>} expanded
 */
export function outermostClosed(graph, expanded) {
  const cover = new Int32Array(graph.blocks.length).fill(-1);
  for (let block = 1; block < cover.length; block += 1) {
    const outer = cover[graph.blocks[block].outer];
    cover[block] = outer >= 0 ? outer : expanded.has(block) ? -1 : block;
  }
  return cover;
}

/** @param {Graph} graph @param {Item[]} items @param {Int32Array} itemOf @returns {Wire[]} */
function wiresBetween(graph, items, itemOf) {
  /** @type {Wire[]} */
  const wires = [];
  /** @type {Map<number, Wire>} */
  const merged = new Map();
  for (let edge = 0; edge < graph.edgeCount; edge += 1) {
    const operand = graph.operand[edge];
    const from = itemOf[operand];
    const to = itemOf[graph.result[edge]];
    if (from === to) continue;
    const closed = items[to].block >= 0;
    const bundled = closed && items[from].block >= 0;
    const key = (bundled ? -1 - from : operand) * items.length + to;
    const existing = closed ? merged.get(key) : undefined;
    if (existing) {
      existing.edges.push(edge);
      continue;
    }
    const wire = { from, to, value: bundled ? -1 : operand, edges: [edge] };
    wires.push(wire);
    if (closed) merged.set(key, wire);
  }
  return wires;
}

/**
 * Choose the blocks to open initially: from the outside in, while at most `budget` items are visible. Blocks whose
 * names differ only in digits, and whose outer blocks do, are opened together or not at all; a fold opens only with its
 * contents. Mirrors `initially_open` of minigrad_viz/trace/visibility.py.
 * @param {Graph} graph @param {number} [budget] @returns {Set<number>}
 */
export function startExpanded(graph, budget = 150) {
  const { blocks } = graph;
  const nodeCounts = new Int32Array(blocks.length);
  for (const block of graph.block) nodeCounts[block] += 1;
  for (let block = 1; block < blocks.length; block += 1) nodeCounts[blocks[block].outer] += 1;
  const group = blockGroups(blocks);
  const growth = new Int32Array(blocks.length);
  for (let block = 1; block < blocks.length; block += 1) growth[group[block]] += nodeCounts[block] - 1;
  const open = new Set([0]);
  const closed = new Set();
  let itemCount = nodeCounts[0];
  for (let block = 1; block < blocks.length; block += 1) {
    if (!open.has(blocks[block].outer) || closed.has(group[block])) continue;
    if (itemCount + growth[group[block]] > budget) {
      closed.add(group[block]);
      continue;
    }
    open.add(block);
    itemCount += growth[group[block]];
    growth[group[block]] = 0; // the entire group is counted
  }
  return open;
}

/**
 * Return a group index for each block; the blocks of a group are opened together.
 * @param {import("../base/types.js").Block[]} blocks
 */
function blockGroups(blocks) {
  /** @type {Map<string, number>} */
  const indices = new Map();
  const group = new Int32Array(blocks.length);
  for (let block = 1; block < blocks.length; block += 1) {
    const { outer, name } = blocks[block];
    group[block] = group[outer];
    if (blocks[outer].kind === "fold") continue;
    const key = `${group[outer]} ${name.replace(/[0-9₀-₉]+/g, "#")}`;
    group[block] = indices.get(key) ?? indices.size + 1;
    indices.set(key, group[block]);
  }
  return group;
}

/** Return a block and its ancestors, except for block 0. @param {Graph} graph @param {number} block */
export function ancestorsOf({ blocks }, block) {
  const path = [];
  for (let at = block; at > 0; at = blocks[at].outer) path.push(at);
  return path;
}

/**
 * Open all blocks around a node.
 * @param {Graph} graph @param {ReadonlySet<number>} expanded @param {number} node
 */
export function openAround(graph, expanded, node) {
  return new Set([...expanded, ...ancestorsOf(graph, graph.block[node])]);
}

/**
 * Open a closed block, or close an open one.
 * @param {Graph} graph @param {ReadonlySet<number>} expanded @param {number} block
 */
export function toggle(graph, expanded, block) {
  const opened = new Set(expanded);
  if (block > 0 && block < graph.blocks.length && !opened.delete(block)) opened.add(block);
  return opened;
}

/** Open every block. @param {Graph} graph */
export function expandAll(graph) {
  return new Set(graph.blocks.keys());
}

/** Close every block except the graph itself. @returns {Set<number>} */
export function collapseAll() {
  return new Set([0]);
}
