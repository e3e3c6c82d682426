/**
 * Moving the focus through the drawing with arrow keys: left and right follow the edges, up and down go to the next box
 * of the column.
 */

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {"left" | "right" | "up" | "down"} Way */

/** @param {string} key @returns {Way | null} */
export function wayOf(key) {
  const ways = /** @type {Record<string, Way>} */ ({
    ArrowLeft: "left",
    ArrowRight: "right",
    ArrowUp: "up",
    ArrowDown: "down",
  });
  return Object.hasOwn(ways, key) ? ways[key] : null;
}

/**
 * The item to go to from item number `at`; -1 where there is none.
 * @param {Scene} scene @param {number} at @param {Way} way
 */
export function neighbour(scene, at, way) {
  if (way === "left" || way === "right") {
    const wires = scene.wires.filter((wire) => (way === "left" ? wire.to : wire.from) === at);
    if (!wires.length) return -1;
    return way === "left" ? wires[0].from : wires[0].to;
  }
  const here = scene.items[at];
  const middle = (/** @type {{y: number, h: number}} */ item) => item.y + item.h / 2;
  let best = -1;
  let least = Infinity;
  scene.items.forEach((item, k) => {
    const far = way === "down" ? middle(item) - middle(here) : middle(here) - middle(item);
    const beside = item.x < here.x + here.w && here.x < item.x + item.w;
    if (k === at || far <= 0 || !beside || far >= least) return;
    least = far;
    best = k;
  });
  return best;
}
