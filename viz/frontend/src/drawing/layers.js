/** Layers of the drawing: things of one kind, of which those are there that are wanted. */
import { drawn } from "../base/dom.js";
import { ceil, floor, min } from "../base/math.js";

const SHEET = 80; // so many things of a kind lie on a sheet, and more where that would be
const SHEETS = 25; // too many sheets

/**
 * Things of one kind on sheets that lie on each other: a browser paints a sheet again only if something on it changed,
 * so what moves, and a card that changes, do not cost the painting of the whole. A wire's label lies on another sheet,
 * over all wires.
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
    /** Makes what is wanted, and takes away what is not. @param {(at: number) => boolean} wanted */
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
    /** Paints one, or all, that are there. @param {number} at */
    paint(at) {
      const one = made[at];
      if (one) paint?.(at, one);
    },
  };
}
