/**
 * Routes as curves: horizontal where the route is horizontal, an S between columns, as in
 * minigrad_viz/pictures/curves.py.
 */
import { hypot, round } from "../base/math.js";

/** @typedef {[number, number]} Point */

export const TIP = 8;

/** @param {number} x */
const shortNumber = (x) => String(round(x * 10) / 10);

/**
 * Return the path of a route. It ends inside the arrowhead; with `back` the arrowhead is at its beginning.
 * @param {Point[]} route @param {boolean} [back]
 */
export function curvePath(route, back = false) {
  const last = route.length - 1;
  let [x, y] = route[0];
  if (back) x += TIP - 1;
  let path = `M${shortNumber(x)} ${shortNumber(y)}`;
  for (let k = 1; k <= last; k += 1) {
    const toX = route[k][0] - (k === last && !back ? TIP - 1 : 0);
    const toY = route[k][1];
    const middle = shortNumber((x + toX) / 2);
    if (toY === y) path += `H${shortNumber(toX)}`;
    else path += `C${middle} ${shortNumber(y)} ${middle} ${shortNumber(toY)} ${shortNumber(toX)} ${shortNumber(toY)}`;
    x = toX;
    y = toY;
  }
  return path;
}

/**
 * Return the arrowhead at a point; `way` is 1 to point right, -1 to point left.
 * @param {Point} end @param {number} [way] @param {number} [size]
 */
export function tipPath([x, y], way = 1, size = 1) {
  const long = -way * TIP * size;
  return `M${shortNumber(x)} ${shortNumber(y)}l${long} ${-3.5 * size}v${7 * size}z`;
}

/**
 * Return the point of a segment at t in [0, 1].
 * @param {Point} a @param {Point} b @param {number} t @returns {Point}
 */
function pieceAt([x0, y0], [x1, y1], t) {
  return [x0 + (x1 - x0) * (1.5 * t * (1 - t) + t * t * t), y0 + (y1 - y0) * t * t * (3 - 2 * t)];
}

/**
 * Sample points along a route, first to last, for an element that moves along it.
 * @param {Point[]} route @param {number} [each] samples per segment
 */
export function samplesOf(route, each = 8) {
  const points = [route[0]];
  for (let k = 1; k < route.length; k += 1) {
    const level = route[k][1] === route[k - 1][1];
    for (let at = 1; at <= (level ? 1 : each); at += 1)
      points.push(pieceAt(route[k - 1], route[k], level ? 1 : at / each));
  }
  return points;
}

/** Return the y of a route at x. @param {Point[]} route @param {number} x */
export function heightAt(route, x) {
  for (let k = 1; k < route.length; k += 1) {
    const [a, b] = [route[k - 1], route[k]];
    if (x > b[0]) continue;
    if (a[1] === b[1] || x <= a[0]) return a[1];
    let [low, high] = [0, 1];
    for (let turn = 0; turn < 20; turn += 1) {
      const t = (low + high) / 2;
      if (pieceAt(a, b, t)[0] < x) low = t;
      else high = t;
    }
    return pieceAt(a, b, low)[1];
  }
  return route[route.length - 1][1];
}

/** Return the midpoint of a route by arc length. @param {Point[]} route @returns {Point} */
export function middleOf(route) {
  const points = samplesOf(route);
  const lengths = points.map((point, k) =>
    k ? hypot(point[0] - points[k - 1][0], point[1] - points[k - 1][1]) : 0,
  );
  let left = lengths.reduce((sum, length) => sum + length, 0) / 2;
  for (let k = 1; k < points.length; k += 1) {
    if (left <= lengths[k]) {
      const share = lengths[k] ? left / lengths[k] : 0;
      return [
        points[k - 1][0] + share * (points[k][0] - points[k - 1][0]),
        points[k - 1][1] + share * (points[k][1] - points[k - 1][1]),
      ];
    }
    left -= lengths[k];
  }
  return points[points.length - 1];
}
