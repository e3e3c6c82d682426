/** Layers of the drawing: elements of one kind, of which only the needed ones exist. */
import { drawn } from "../base/dom.js";
import { ceil, floor, min } from "../base/math.js";

const SHEET = 80; // elements per sheet; more if that would
const SHEETS = 25; // exceed this many sheets

/**
 * Create a layer of stacked sheets. A browser repaints a sheet only if something on it changed, so moving elements and
 * changed cards do not repaint the entire drawing. Wire labels go on separate sheets above all wires.
 * @template Thing @template {{group: SVGElement, over?: SVGElement | null}} Made
 * @param {Thing[]} things
 * @param {(thing: Thing) => Made} make
 * @param {(at: number, made: Made) => void} [paint]
 */
export function layer(things, make, paint) {
  const many = min(ceil(things.length / SHEET), SHEETS);
  const [sheets, tops] = [0, 1].map(() => Array.from({ length: many }, () => drawn("svg", { class: "mg-drawing" })));
  const made = /** @type {(Made | undefined)[]} */ ([]);
  const add = (/** @type {number} */ at) => {
    const one = make(things[at]);
    const sheet = floor((at * many) / things.length);
    sheets[sheet].append(one.group);
    if (one.over) tops[sheet].append(one.over);
    paint?.(at, one);
    return (made[at] = one);
  };
  return {
    sheets,
    tops,
    made,
    have: (/** @type {number} */ at) => made[at] ?? add(at),
    /** Create the wanted elements and remove the others. @param {(at: number) => boolean} wanted */
    keep(wanted) {
      for (let at = 0; at < things.length; at += 1) {
        const one = made[at];
        if (wanted(at) === Boolean(one)) continue;
        one?.group.remove();
        one?.over?.remove();
        if (one) made[at] = undefined;
        else add(at);
      }
    },
    /** Paint an element if it exists. @param {number} at */
    paint(at) {
      const one = made[at];
      if (one) paint?.(at, one);
    },
  };
}
