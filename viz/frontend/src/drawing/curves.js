/**
 * Routes as curves: horizontal where the route is horizontal, an S between columns, as in
 * minigrad_viz/pictures/curves.py.
 */
import { hypot, round } from "../base/math.js";

/** @typedef {[number, number]} Point */

export const ARROW_LENGTH = 8;

/** @param {number} x */
const formatCoordinate = (x) => String(round(x * 10) / 10);

/**
 * Return the path of a route. It ends inside the arrowhead; with `isBackward` the arrowhead is at its beginning.
 * @param {Point[]} route @param {boolean} [isBackward]
 */
export function curvePath(route, isBackward = false) {
  const last = route.length - 1;
  let [x, y] = route[0];
  if (isBackward) x += ARROW_LENGTH - 1;
  let path = `M${formatCoordinate(x)} ${formatCoordinate(y)}`;
  for (let k = 1; k <= last; k += 1) {
    const toX = route[k][0] - (k === last && !isBackward ? ARROW_LENGTH - 1 : 0);
    const toY = route[k][1];
    const middle = formatCoordinate((x + toX) / 2);
    if (toY === y) path += `H${formatCoordinate(toX)}`;
    else path += `C${middle} ${formatCoordinate(y)} ${middle} ${formatCoordinate(toY)} ${formatCoordinate(toX)} ${formatCoordinate(toY)}`;
    x = toX;
    y = toY;
  }
  return path;
}

/**
 * Return the arrowhead at a point; `direction` is 1 to point right, -1 to point left.
 * @param {Point} end @param {number} [direction] @param {number} [size]
 */
export function arrowheadPath([x, y], direction = 1, size = 1) {
  const length = -direction * ARROW_LENGTH * size;
  return `M${formatCoordinate(x)} ${formatCoordinate(y)}l${length} ${-3.5 * size}v${7 * size}z`;
}

/**
 * Return the point of a segment at t in [0, 1].
 * @param {Point} a @param {Point} b @param {number} t @returns {Point}
 */
function pointOnSegment([x0, y0], [x1, y1], t) {
  return [x0 + (x1 - x0) * (1.5 * t * (1 - t) + t * t * t), y0 + (y1 - y0) * t * t * (3 - 2 * t)];
}

/**
 * Sample points along a route, first to last, for an element that moves along it.
 * @param {Point[]} route @param {number} [perSegment] samples per segment
 */
export function samplePoints(route, perSegment = 8) {
  const points = [route[0]];
  for (let k = 1; k < route.length; k += 1) {
    const isLevel = route[k][1] === route[k - 1][1];
    for (let at = 1; at <= (isLevel ? 1 : perSegment); at += 1)
      points.push(pointOnSegment(route[k - 1], route[k], isLevel ? 1 : at / perSegment));
  }
  return points;
}

/** Return the y of a route at x. @param {Point[]} route @param {number} x */
export function yAt(route, x) {
  for (let k = 1; k < route.length; k += 1) {
    const [a, b] = [route[k - 1], route[k]];
    if (x > b[0]) continue;
    if (a[1] === b[1] || x <= a[0]) return a[1];
    let [low, high] = [0, 1];
    for (let iteration = 0; iteration < 20; iteration += 1) {
      const t = (low + high) / 2;
      if (pointOnSegment(a, b, t)[0] < x) low = t;
      else high = t;
    }
    return pointOnSegment(a, b, low)[1];
  }
  return route[route.length - 1][1];
}

/** Return the midpoint of a route by arc length. @param {Point[]} route @returns {Point} */
export function midpointOf(route) {
  const points = samplePoints(route);
  const lengths = points.map((point, k) =>
    k ? hypot(point[0] - points[k - 1][0], point[1] - points[k - 1][1]) : 0,
  );
  let remaining = lengths.reduce((sum, length) => sum + length, 0) / 2;
  for (let k = 1; k < points.length; k += 1) {
    if (remaining <= lengths[k]) {
      const fraction = lengths[k] ? remaining / lengths[k] : 0;
      return [
        points[k - 1][0] + fraction * (points[k][0] - points[k - 1][0]),
        points[k - 1][1] + fraction * (points[k][1] - points[k - 1][1]),
      ];
    }
    remaining -= lengths[k];
  }
  return points[points.length - 1];
}
