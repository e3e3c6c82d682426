/** Layers of the drawing: elements of one kind, of which only the needed ones exist. */
import { createSvg } from "../base/dom.js";
import { ceil, floor, min } from "../base/math.js";

const SHEET_SIZE = 80; // elements per sheet; more if that would
const MAX_SHEETS = 25; // exceed this many sheets

/**
 * Create a layer of stacked sheets. A browser repaints a sheet only if something on it changed, so moving elements and
 * changed cards do not repaint the entire drawing. Wire labels go on separate sheets above all wires.
 * @template Thing @template {{group: SVGElement, over?: SVGElement | null}} Made
 * @param {Thing[]} items
 * @param {(thing: Thing) => Made} create
 * @param {(at: number, made: Made) => void} [paint]
 */
export function createLayer(items, create, paint) {
  const sheetCount = min(ceil(items.length / SHEET_SIZE), MAX_SHEETS);
  const [sheets, tops] = [0, 1].map(() => Array.from({ length: sheetCount }, () => createSvg("svg", { class: "mg-drawing" })));
  const elements = /** @type {(Made | undefined)[]} */ ([]);
  const add = (/** @type {number} */ at) => {
    const one = create(items[at]);
    const sheet = floor((at * sheetCount) / items.length);
    sheets[sheet].append(one.group);
    if (one.over) tops[sheet].append(one.over);
    paint?.(at, one);
    return (elements[at] = one);
  };
  return {
    sheets,
    tops,
    elements,
    ensure: (/** @type {number} */ at) => elements[at] ?? add(at),
    /** Create the wanted elements and remove the others. @param {(at: number) => boolean} isWanted */
    keepOnly(isWanted) {
      for (let at = 0; at < items.length; at += 1) {
        const one = elements[at];
        if (isWanted(at) === Boolean(one)) continue;
        one?.group.remove();
        one?.over?.remove();
        if (one) elements[at] = undefined;
        else add(at);
      }
    },
    /** Paint an element if it exists. @param {number} at */
    paint(at) {
      const one = elements[at];
      if (one) paint?.(at, one);
    },
  };
}
