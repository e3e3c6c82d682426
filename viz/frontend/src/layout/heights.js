/**
 * Step 4 of `layout`: choose the links to align, and assign a y coordinate to everything. Mirrors
 * minigrad_viz/layout/heights.py, function by function.
 */

import { max, min } from "../base/math.js";

/** @typedef {import("./graph.js").Layered} Layered */
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
export function straighten(graph) {
  const { nodes, owner, columns } = graph;
  graph.mate = new Array(graph.rank.length).fill(-1);
  const place = new Int32Array(graph.rank.length); // by vertex
  for (let column = 1; column < columns.length; column++) {
    columns[column - 1].forEach((vertex, at) => (place[vertex] = at));
    /** @type {{class: number, one: number, two: number, outlet: number}[]} */
    const wanted = [];
    columns[column].forEach((vertex, at) => {
      const outlet = mainInput(graph, vertex);
      if (outlet >= 0 && (vertex >= nodes || hasOneConsumer(graph, outlet))) {
        const dummies = Number(owner[outlet] >= nodes) + Number(vertex >= nodes);
        wanted.push({ class: [1, 2, 0][dummies], one: place[owner[outlet]], two: at, outlet });
      }
    });
    wanted.sort((a, b) => a.class - b.class || a.one - b.one || a.two - b.two);
    /** @type {{one: number, two: number}[]} */
    const kept = [];
    for (const { one, two, outlet } of wanted) {
      let at = kept.length;
      while (at > 0 && (kept[at - 1].one > one || (kept[at - 1].one === one && kept[at - 1].two >= two))) at--;
      const clearAbove = at === 0 || (kept[at - 1].one < one && kept[at - 1].two < two);
      if (clearAbove && (at === kept.length || (one < kept[at].one && two < kept[at].two))) {
        kept.splice(at, 0, { one, two });
        graph.mate[columns[column][two]] = outlet;
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
  for (const outlet of graph.before[vertex]) {
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
  const consumers = graph.after[outlet].filter((to) => to < graph.nodes);
  return consumers.length > 0 && consumers.every((to) => to === consumers[0]);
}

/**
 * Place the ports of each node in slot order, an aligned input's at the centre, else all around the centre. Outlets are
 * sorted by where their links end, around the centre. Given offsets are kept.
 * @param {Layered} graph
 */
export function placePorts(graph) {
  placeOutlets(graph);
  graph.port = new Array(graph.edges.length).fill(0);
  graph.inputs.forEach((inputs, node) => {
    const mate = graph.mate[node];
    let level = 0;
    let slots = 0;
    inputs.forEach((edge, slot) => {
      if (mate < 0 || graph.feeder[edge] !== mate) return;
      level += 1;
      slots += slot;
    });
    const centre = level ? slots / level : (inputs.length - 1) / 2;
    const reach = max(centre, inputs.length - 1 - centre);
    const step = reach ? min(12, (0.8 * graph.half[node]) / reach) : 0;
    inputs.forEach((edge, slot) => (graph.port[edge] = graph.arrive[edge] ?? (slot - centre) * step));
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
      for (const outlet of graph.before[vertex]) {
        sum[outlet] += at++;
        count[outlet] += 1;
      }
    }
  }
  const mean = Array.from(sum, (total, outlet) => (count[outlet] ? total / count[outlet] : -1));
  for (let node = 0; node < graph.nodes; node++) {
    const outlets = graph.outlets[node];
    if (outlets.length === 1 || !graph.loose.has(node)) continue;
    const middle = (outlets.length - 1) / 2;
    const step = min(12, (0.8 * graph.half[node]) / middle);
    const sorted = [...outlets].sort((one, two) => mean[one] - mean[two]);
    sorted.forEach((outlet, place) => (graph.leave[outlet] = (place - middle) * step));
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
 * @param {number} moves
 * @returns {number[]}
 */
export function settleHeights(graph, gap, moves) {
  const { row, shift, count } = formRows(graph);
  const apart = rowDistances(graph, row, shift, count, gap);
  const pulls = rowPulls(graph, row, shift, count);
  const order = topDown(apart);
  const { highest, lowest } = rowBounds(graph, row, shift, apart, order);
  let y = highest.map((one, at) => (one + lowest[at]) / 2);
  for (let move = 0; move < moves; move++) {
    const wish = y.map((at, index) => (pulls[index].other.length ? (at + pullOf(pulls[index], y)) / 2 : at));
    const down = pushDown(apart, order, wish);
    const up = pushUp(apart, order, wish);
    y = down.map((one, at) => min(max((one + up[at]) / 2, highest[at]), lowest[at]));
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
  const shift = new Array(graph.rank.length).fill(0);
  let count = 0;
  for (const column of graph.columns) {
    for (const vertex of column) {
      const outlet = graph.mate[vertex];
      if (outlet < 0) {
        row[vertex] = count++;
        continue;
      }
      const source = graph.owner[outlet];
      row[vertex] = row[source];
      shift[vertex] = shift[source] + graph.leave[outlet];
      const level = vertex < graph.nodes ? graph.inputs[vertex].find((edge) => graph.feeder[edge] === outlet) : undefined;
      if (level !== undefined) shift[vertex] -= graph.arrive[level] ?? 0;
    }
  }
  return { row, shift, count };
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
  const { half, nodes } = graph;
  /** @type {Apart} */
  const apart = Array.from({ length: count }, () => new Map());
  for (const column of graph.columns) {
    for (let at = 1; at < column.length; at++) {
      const upper = column[at - 1];
      const lower = column[at];
      const space = upper < nodes && lower < nodes ? gap : 0.6 * gap;
      const far = half[upper] + half[lower] + space + (shift[upper] - shift[lower]);
      const below = apart[row[upper]];
      below.set(row[lower], max(far, below.get(row[lower]) ?? far));
    }
  }
  return apart;
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
  const pull = (outlet, vertex, port) => {
    const source = graph.owner[outlet];
    const [one, two] = [row[source], row[vertex]];
    if (one === two) return;
    const down = port + (shift[vertex] - shift[source] - graph.leave[outlet]);
    pulls[two].other.push(one, one, one);
    pulls[two].down.push(-down, -down, -down);
    pulls[one].other.push(two);
    pulls[one].down.push(down);
  };
  for (let edge = 0; edge < graph.edges.length; edge++) {
    if (graph.feeder[edge] >= 0) pull(graph.feeder[edge], graph.edges[edge][1], graph.port[edge]);
  }
  for (const lane of graph.lane) for (let at = 1; at < lane.length; at++) pull(lane[at - 1], lane[at], 0);
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
 * @param {Apart} apart
 * @param {number[]} order
 * @returns {{highest: number[], lowest: number[]}}
 */
function rowBounds(graph, row, shift, apart, order) {
  let tall = 0;
  for (let node = 0; node < graph.nodes; node++) {
    if (graph.half[node] > tall && hasGivenPorts(graph, node)) tall = graph.half[node];
  }
  const rise = graph.half.map((half) => min(0, half - tall));
  const top = new Array(apart.length).fill(-Infinity);
  const bottom = new Array(apart.length).fill(Infinity);
  row.forEach((at, vertex) => (top[at] = max(top[at], rise[vertex] - shift[vertex])));
  const highest = pushDown(apart, order, top);
  let room = row.length ? -Infinity : 0;
  row.forEach((at, vertex) => (room = max(room, highest[at] + shift[vertex] + rise[vertex])));
  room *= 1.3;
  row.forEach((at, vertex) => (bottom[at] = min(bottom[at], room - rise[vertex] - shift[vertex])));
  return { highest, lowest: pushUp(apart, order, bottom) };
}

/**
 * @param {Layered} graph
 * @param {number} node
 * @returns {boolean}
 */
function hasGivenPorts(graph, node) {
  return (
    graph.outlets[node].some((outlet) => graph.leave[outlet] !== 0) ||
    graph.inputs[node].some((edge) => graph.arrive[edge] !== null)
  );
}

/**
 * Sort the rows topologically, each after those above it. Aligned links never cross, so "above" has no cycles.
 * @param {Apart} apart
 * @returns {number[]}
 */
function topDown(apart) {
  const waiting = new Int32Array(apart.length);
  for (const lowers of apart) for (const lower of lowers.keys()) waiting[lower] += 1;
  /** @type {number[]} */
  const order = [];
  waiting.forEach((count, row) => {
    if (!count) order.push(row);
  });
  for (const row of order) {
    for (const lower of apart[row].keys()) if (--waiting[lower] === 0) order.push(lower);
  }
  return order;
}

/**
 * Return the smallest y of each row, at least `wish`, that respect all distances.
 * @param {Apart} apart
 * @param {number[]} order
 * @param {number[]} wish
 * @returns {number[]}
 */
function pushDown(apart, order, wish) {
  const y = wish.slice();
  for (const row of order) for (const [lower, far] of apart[row]) y[lower] = max(y[lower], y[row] + far);
  return y;
}

/**
 * Return the largest y of each row, at most `wish`, that respect all distances.
 * @param {Apart} apart
 * @param {number[]} order
 * @param {number[]} wish
 * @returns {number[]}
 */
function pushUp(apart, order, wish) {
  const y = wish.slice();
  for (let at = order.length - 1; at >= 0; at--) {
    for (const [lower, far] of apart[order[at]]) y[order[at]] = min(y[order[at]], y[lower] - far);
  }
  return y;
}
