/**
 * Layout of a graph with open blocks, which are drawn as nested frames around their parts. Mirrors
 * minigrad_viz/layout/nesting.py, function by function, and returns the same coordinates.
 *
 * An open block is laid out first, on its own, and is then a box in the outer layout. A value crosses its border at a
 * port: it enters on the left side and leaves on the right side, at one port however many consumers it has. In the
 * block's layout the ports are pinned boxes of zero size. So their order has few crossings, and the edges outside
 * follow it.
 *
 * A *hop* is the part of an edge inside one frame: from a part or an entry to a part or an exit. Edges with the same
 * value share their hops while they follow the same path.
 */

import { computeLayout, checkSizes, roundCoordinate, simplifyRoute } from "./layered.js";
import { abs, max } from "../base/math.js";

/** @typedef {import("./layered.js").Layout} Layout */
/** @typedef {import("./graph.js").Edge} Edge */
/** @typedef {import("./graph.js").Point} Point */
/** @typedef {import("./graph.js").Ports} Ports */

/**
 * @typedef {object} Hop
 * @property {number} wire
 * @property {number} start first part, or PORT
 * @property {number} end last part, or PORT
 * @property {number} edge an edge that contains it; the only one if it ends at an item that is not a frame
 */

/**
 * An open block. The nodes of its layout are its entries, its parts, then its exits.
 * @typedef {object} Frame
 * @property {number[]} parts its direct children, in tape order
 * @property {Map<number, number>} nodeOfPart by part
 * @property {Hop[]} hops
 * @property {Map<string, number>} sharedHops by wire, begin and end: a hop shared by edges
 * @property {Map<number, number>} entries by wire: the depth of the value that enters
 * @property {Map<number, number>} entryOffset by wire: offset of its entry below the frame's centre
 * @property {Map<number, number>} exitOffset by wire: offset of its exit below the frame's centre
 * @property {Layout} layout
 * @property {Point} origin origin of the layout relative to the frame; later to the drawing
 * @property {number} width
 * @property {number} height
 */

/**
 * The positions of everything, in the unit of the sizes: x to the right, y down, (0, 0) the top left corner. `routes`
 * lead from the source's right side to the target's left side, through the ports of all frames between them; they are
 * level inside columns and slope only between them.
 * @typedef {object} Nested
 * @property {number} width
 * @property {number} height
 * @property {[number, number, number, number][]} boxes by item: left, top, width, height
 * @property {number[]} depths by item: number of enclosing frames
 * @property {Point[][]} routes by edge
 */

const FRAME_OF_ALL = -1; // the root frame: the whole drawing
const PORT = -2; // a hop begins at an entry of its frame, or ends at an exit

/**
 * Lay out items 0, 1, ..., where item i is inside item `outer[i]`, or at the top level if that is -1.
 *
 * An item that contains others is an open block, drawn as a frame. Its size is that of its header, a strip at the top
 * in which nothing else is drawn; the frame is at least that wide. The size of any other item is that of its box. A
 * block comes before its parts. `edges` join items that are not frames; the edges into an item are its inputs, in slot
 * order. `ports` may have `wires`, `leaveOffset` and `arriveOffset`. Coordinates are rounded to 0.01.
 *
 * Throws RangeError for an item that comes before its block, for an edge that ends at a frame or a missing item, for
 * edges that form a cycle between blocks, and for sizes as `layout` does.
 * @param {ArrayLike<Point>} sizes
 * @param {ArrayLike<number>} outer
 * @param {ArrayLike<Edge>} edges
 * @param {{gapX?: number, gapY?: number, padding?: number, ports?: Ports}} [options]
 * @returns {Nested}
 */
export function nest(sizes, outer, edges, { gapX = 48, gapY = 16, padding = 12, ports = {} } = {}) {
  checkSizes(sizes);
  const { frames, depths } = openFrames(outer);
  const hops = splitEdges(outer, edges, frames, depths, ports);
  for (const item of [...frames.keys()].sort((one, two) => two - one)) {
    layoutFrame(frames, item, sizes, ports, { gapX, gapY, padding });
  }
  const boxes = placeItems(sizes, outer, frames);
  const routes = hops.map((path) => joinHops(path, frames));
  const { width, height } = frameOf(frames, FRAME_OF_ALL);
  return {
    width: roundCoordinate(width),
    height: roundCoordinate(height),
    boxes: boxes.map(([x, y, wide, high]) => [
      roundCoordinate(x), roundCoordinate(y), roundCoordinate(wide), roundCoordinate(high),
    ]),
    depths,
    routes,
  };
}

/**
 * Return the frames, by item, each after its parent; and the number of frames around each item.
 * @param {ArrayLike<number>} outer
 * @returns {{frames: Map<number, Frame>, depths: number[]}}
 */
function openFrames(outer) {
  /** @type {Map<number, Frame>} */
  const frames = new Map([[FRAME_OF_ALL, emptyFrame()]]);
  /** @type {number[]} */
  const depths = [];
  for (let item = 0; item < outer.length; item++) {
    const block = outer[item];
    if (!(block >= FRAME_OF_ALL && block < item)) {
      throw new RangeError(`item ${item} is inside item ${block}; expected an earlier item, or -1`);
    }
    depths.push(block === FRAME_OF_ALL ? 0 : depths[block] + 1);
    if (!frames.has(block)) frames.set(block, emptyFrame());
    frameOf(frames, block).parts.push(item);
  }
  return { frames, depths };
}

/** @returns {Frame} */
function emptyFrame() {
  return {
    parts: [], nodeOfPart: new Map(), hops: [], sharedHops: new Map(), entries: new Map(), entryOffset: new Map(), exitOffset: new Map(),
    layout: { width: 0, height: 0, centers: [], routes: [], ranks: [] }, origin: [0, 0], width: 0, height: 0,
  };
}

/**
 * @param {Map<number, Frame>} frames
 * @param {number} item
 * @returns {Frame}
 */
function frameOf(frames, item) {
  return /** @type {Frame} */ (frames.get(item));
}

// -- Split edges into hops --------------------------------------------------------------------------

/**
 * Record the hops in their frames. Return for each edge its hops in order: the frame, and the index there.
 * @param {ArrayLike<number>} outer
 * @param {ArrayLike<Edge>} edges
 * @param {Map<number, Frame>} frames
 * @param {number[]} depths
 * @param {Ports} ports
 * @returns {[number, number][][]}
 */
function splitEdges(outer, edges, frames, depths, ports) {
  /** @type {Map<string, number>} */
  const wires = new Map();
  const depthOfValue = valueDepths(outer.length, edges, frames);
  return Array.from(edges, ([source, target], edge) => {
    const key = `${source} ${ports.leaveOffset?.[edge] ?? 0} ${ports.wires?.[edge] ?? source}`;
    const wire = wires.get(key) ?? wires.size;
    wires.set(key, wire);
    let [sourceItem, targetItem] = [source, target];
    /** @type {[number, Hop][]} */
    const leavingHops = [];
    /** @type {[number, Hop][]} */
    const enteringHops = [];
    while (outer[sourceItem] !== outer[targetItem]) {
      if (depths[sourceItem] >= depths[targetItem]) {
        leavingHops.push([outer[sourceItem], { wire, start: sourceItem, end: PORT, edge }]);
        sourceItem = outer[sourceItem];
      } else {
        enteringHops.push([outer[targetItem], { wire, start: PORT, end: targetItem, edge }]);
        targetItem = outer[targetItem];
      }
    }
    leavingHops.push([outer[sourceItem], { wire, start: sourceItem, end: targetItem, edge }], ...enteringHops.reverse());
    return leavingHops.map(([item, hop]) => [item, addHop(frames, item, hop, depthOfValue[source])]);
  });
}

/**
 * Return the index of a hop in frame `item`; add it unless it ends at a port and exists already.
 * @param {Map<number, Frame>} frames
 * @param {number} item
 * @param {Hop} hop
 * @param {number} depth
 * @returns {number}
 */
function addHop(frames, item, hop, depth) {
  const frame = frameOf(frames, item);
  if (hop.start === PORT && !frame.entries.has(hop.wire)) frame.entries.set(hop.wire, depth);
  if (hop.end === PORT) frame.exitOffset.set(hop.wire, 0);
  let number = frame.hops.length;
  if (hop.end === PORT || frames.has(hop.end)) {
    const key = `${hop.wire} ${hop.start} ${hop.end}`;
    number = frame.sharedHops.get(key) ?? number;
    frame.sharedHops.set(key, number);
  }
  if (number === frame.hops.length) frame.hops.push(hop);
  return number;
}

/**
 * Return for each item the longest path to it from a leaf, in edges.
 * @param {number} items
 * @param {ArrayLike<Edge>} edges
 * @param {Map<number, Frame>} frames
 * @returns {number[]}
 */
function valueDepths(items, edges, frames) {
  /** @type {Map<number, number[]>} */
  const inputs = new Map();
  for (let item = 0; item < items; item++) if (!frames.has(item)) inputs.set(item, []);
  for (let edge = 0; edge < edges.length; edge++) {
    const [source, target] = edges[edge];
    if (!inputs.has(source) || !inputs.has(target)) {
      throw new RangeError(`edge (${source}, ${target}) must connect two of ${items} items that are not frames`);
    }
    inputs.get(target)?.push(source);
  }
  const depth = new Array(items).fill(0);
  for (const item of topologicalOrder(inputs)) {
    for (const source of inputs.get(item) ?? []) depth[item] = max(depth[item], depth[source] + 1);
  }
  return depth;
}

/**
 * Sort the items topologically, inputs first, in the order of the keys where possible.
 * @param {Map<number, number[]>} inputs
 * @returns {number[]}
 */
function topologicalOrder(inputs) {
  /** @type {number[]} */
  const order = [];
  /** @type {Map<number, "open" | "done">} */
  const state = new Map();
  for (const item of inputs.keys()) {
    const stack = [item];
    while (stack.length) {
      const top = stack[stack.length - 1];
      if (!state.has(top)) {
        state.set(top, "open");
        for (const source of inputs.get(top) ?? []) {
          if (state.get(source) === "open") {
            throw new RangeError(`the edges form a cycle through item ${source}; expected blocks without cycles`);
          }
          stack.push(source);
        }
      } else {
        stack.pop();
        if (state.get(top) === "open") {
          state.set(top, "done");
          order.push(top);
        }
      }
    }
  }
  return order;
}

// -- Lay out frames from the inside out --------------------------------------------------------------

/**
 * Lay out the parts of a frame, whose inner frames are laid out already, and set its size and port offsets.
 * @param {Map<number, Frame>} frames
 * @param {number} item
 * @param {ArrayLike<Point>} sizes
 * @param {Ports} ports
 * @param {{gapX: number, gapY: number, padding: number}} gaps
 */
function layoutFrame(frames, item, sizes, ports, { gapX, gapY, padding }) {
  const frame = frameOf(frames, item);
  /** @type {Map<number, number[]>} */
  const inputs = new Map(frame.parts.map((part) => [part, []]));
  for (const hop of frame.hops) {
    if (hop.start !== PORT && hop.end !== PORT) inputs.get(hop.end)?.push(hop.start);
  }
  const entryNodes = new Map([...frame.entries.keys()].map((wire, at) => [wire, at]));
  frame.nodeOfPart = new Map(topologicalOrder(inputs).map((part, at) => [part, entryNodes.size + at]));
  const exitNodes = new Map([...frame.exitOffset.keys()].map((wire, at) => [wire, entryNodes.size + frame.nodeOfPart.size + at]));
  /** @type {Point[]} */
  const boxes = Array.from({ length: entryNodes.size + frame.nodeOfPart.size + exitNodes.size }, () => [0, 0]);
  for (const [part, node] of frame.nodeOfPart) {
    const inside = frames.get(part);
    boxes[node] = inside ? [inside.width, inside.height] : sizes[part];
  }
  const result = computeLayout(
    boxes,
    frame.hops.map((hop) => /** @type {Edge} */ ([
      hop.start === PORT ? entryNodes.get(hop.wire) : frame.nodeOfPart.get(hop.start),
      hop.end === PORT ? exitNodes.get(hop.wire) : frame.nodeOfPart.get(hop.end),
    ])),
    gapX,
    gapY,
    innerPorts(frames, frame, ports),
  );
  frame.layout = result;
  if (item === FRAME_OF_ALL) {
    frame.width = result.width;
    frame.height = result.height;
    return;
  }
  const header = sizes[item];
  frame.origin = [entryNodes.size ? 0 : padding, header[1] + padding];
  frame.width = max(frame.origin[0] + result.width + (exitNodes.size ? 0 : padding), header[0]);
  frame.height = frame.origin[1] + result.height + padding;
  const below = (/** @type {number} */ node) => frame.origin[1] + result.centers[node][1] - frame.height / 2;
  for (const [wire, node] of entryNodes) frame.entryOffset.set(wire, below(node));
  for (const [wire, node] of exitNodes) frame.exitOffset.set(wire, below(node));
}

/**
 * Return the ports of a frame's hops: those of its inner frames, or as `ports` specifies.
 * @param {Map<number, Frame>} frames
 * @param {Frame} frame
 * @param {Ports} ports
 * @returns {Ports}
 */
function innerPorts(frames, frame, ports) {
  const leaveOffset = frame.hops.map(({ start, wire, edge }) => {
    const inside = frames.get(start);
    if (inside) return inside.exitOffset.get(wire) ?? 0;
    return start === PORT ? null : ports.leaveOffset?.[edge] ?? null;
  });
  const arriveOffset = frame.hops.map(({ end, wire, edge }) => {
    const inside = frames.get(end);
    if (inside) return inside.entryOffset.get(wire) ?? 0;
    return end === PORT ? null : ports.arriveOffset?.[edge] ?? null;
  });
  const first = new Map([...frame.entries.values()].map((far, at) => [at, far]));
  const inside = first.size + frame.nodeOfPart.size;
  const last = new Set([...frame.exitOffset.keys()].map((_, at) => inside + at));
  return { wires: frame.hops.map(({ wire }) => wire), leaveOffset, arriveOffset, first, last };
}

// -- Combine the frames into one drawing -----------------------------------------------------------

/**
 * Return the boxes of all items, from the outside in.
 * @param {ArrayLike<Point>} sizes
 * @param {ArrayLike<number>} outer
 * @param {Map<number, Frame>} frames
 * @returns {[number, number, number, number][]}
 */
function placeItems(sizes, outer, frames) {
  return Array.from(outer, (block, item) => {
    const outerFrame = frameOf(frames, block);
    const [x, y] = outerFrame.layout.centers[/** @type {number} */ (outerFrame.nodeOfPart.get(item))];
    const frame = frames.get(item);
    const [width, height] = frame ? [frame.width, frame.height] : sizes[item];
    const left = outerFrame.origin[0] + x - width / 2;
    const top = outerFrame.origin[1] + y - height / 2;
    if (frame) {
      frame.origin = [left + frame.origin[0], top + frame.origin[1]];
    }
    return [left, top, width, height];
  });
}

/**
 * Join the hops of an edge into one route. Heights that differ only by rounding are made equal. If a title makes a
 * frame wider than its contents, the edge continues level to the border: hops begin level.
 * @param {[number, number][]} path
 * @param {Map<number, Frame>} frames
 * @returns {Point[]}
 */
function joinHops(path, frames) {
  /** @type {Point[]} */
  const points = [];
  for (const [item, number] of path) {
    const frame = frameOf(frames, item);
    const begin = points.length ? 1 : 0;
    /** @type {Point[]} */
    const route = frame.layout.routes[number].map(([x, y]) => [frame.origin[0] + x, frame.origin[1] + y]);
    for (const [x, y] of route.slice(begin)) {
      const last = points.length ? points[points.length - 1][1] : y;
      points.push([x, abs(y - last) < 1e-6 ? last : y]);
    }
  }
  return simplifyRoute(points);
}
