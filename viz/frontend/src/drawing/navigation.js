/**
 * Keyboard navigation in the drawing with Alt and the arrow keys: left and right follow edges, up and down go to the
 * next box in the column.
 */

/** @typedef {import("./scene.js").Scene} Scene */

/** The direction of each arrow key: down, right. @type {Record<string, [number, number]>} */
const DIRECTIONS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Return the direction of a key, if it has one. @param {string} key @returns {[number, number] | undefined} */
export const keyDirection = (key) => (Object.hasOwn(DIRECTIONS, key) ? DIRECTIONS[key] : undefined);

/**
 * Return the index of the item to go to from the item at index `at`; -1 if there is none.
 * @param {Scene} scene @param {number} at @param {[number, number]} way
 */
export function neighbour({ items, wires }, at, [down, right]) {
  if (right) {
    const wire = wires.find(({ from, to }) => (right < 0 ? to : from) === at);
    return wire ? (right < 0 ? wire.from : wire.to) : -1;
  }
  const { x, y, w, h } = items[at];
  const distance = (/** @type {import("./viewport.js").Rect} */ one) => down * (one.y + one.h / 2 - y - h / 2);
  const candidates = items.filter((one) => distance(one) > 0 && one.x < x + w && x < one.x + one.w);
  return candidates.length ? items.indexOf(candidates.reduce((best, one) => (distance(one) < distance(best) ? one : best))) : -1;
}
