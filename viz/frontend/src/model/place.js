/** A cursor into trace data that validates what it reads, and reports the path of invalid data. */

import { whole } from "../base/math.js";
import { shorten } from "../base/notation.js";

/** @typedef {import("../base/types.js").Cells} Cells */
/** @typedef {import("../base/types.js").Quantity} Quantity */

/** @param {string} why @returns {never} */
export function refuse(why) {
  throw new Error(`This trace cannot be shown: ${why}.`);
}

/** Format data as JSON, if possible. @param {unknown} found */
export const quoted = (found) => {
  try {
    return shorten(String(JSON.stringify(found)), 60);
  } catch {
    return "deeply nested data"; // too deep for JSON
  }
};

/** A value in a trace with its path. */
export class Place {
  /** @param {any} found parsed JSON @param {string} where a path such as trace.nodes.op */
  constructor(found, where) {
    this.found = found;
    this.where = where;
  }

  /** @param {string} wanted @param {unknown} [found] @returns {never} */
  refuse(wanted, found = this.found) {
    if (found === undefined) refuse(`${this.where} is missing`);
    return refuse(`${this.where} is ${quoted(found)}; expected ${wanted}`);
  }

  /** @returns {Record<string, any>} */
  record() {
    const { found } = this;
    return typeof found === "object" && found !== null && !Array.isArray(found) ? found : this.refuse("an object");
  }

  /** @param {string} name */
  at(name) {
    return new Place(this.record()[name], `${this.where}.${name}`);
  }

  /**
   * Return what `read` returns; `nothing` if the value is missing or null.
   * @template T, N
   * @param {N} nothing
   * @param {(place: Place) => T} read
   */
  or(nothing, read) {
    return this.found == null ? nothing : read(this);
  }

  /** @returns {string} */
  asText() {
    return typeof this.found === "string" ? this.found : this.refuse("a string");
  }

  /** A string or null. */
  maybe() {
    return this.or(null, () => this.asText());
  }

  /** A number. JSON cannot represent some, which are strings. @returns {number} */
  asNumber() {
    const { found } = this;
    if (typeof found === "number") return found;
    return ["NaN", "Infinity", "-Infinity"].includes(found) ? Number(found) : this.refuse("a number");
  }

  /** A scalar, one of the arrays, or null if unknown. @param {Cells[]} arrays @returns {Quantity | null} */
  quantity(arrays) {
    if (typeof this.found === "object") return this.or(null, () => arrays[this.at("array").asInteger(arrays.length)]);
    return this.asNumber();
  }

  /** An integer in [`least`, `end`). @param {number} [end] @param {number} [least] @returns {number} */
  asInteger(end = Infinity, least = 0, found = this.found) {
    if (whole(found) && found >= least && found < end) return found;
    return this.refuse(`an integer from ${least} to ${end - 1}`, found);
  }

  /** @param {number} [length] @returns {any[]} */
  asList(length) {
    return Array.isArray(this.found) ? this.sized(this.found, length) : this.refuse("a list");
  }

  /** @template {ArrayLike<any>} T @param {T} items @param {number} [length] */
  sized(items, length = items.length) {
    if (items.length !== length) refuse(`${this.where} has ${items.length} items; expected ${length}`);
    return items;
  }

  /** @template T @param {(item: Place, at: number) => T} read */
  asItems(read) {
    return this.asList().map((item, at) => read(new Place(item, `${this.where}[${at}]`), at));
  }

  /**
   * A column of numbers and of items that `read` parses.
   * @template T
   * @param {(item: Place) => T} read
   * @param {number} length
   * @returns {(T | number)[]}
   */
  column(read, length) {
    return this.asList(length).map((item) => (typeof item === "number" ? item : read(new Place(item, this.where))));
  }

  /** A column of integers. @param {number} end @param {number} [length] @param {number} [least] */
  indices(end, length, least = 0) {
    const items = this.asList(length);
    for (const item of items) if (typeof item !== "number") this.asInteger(end, least, item);
    const indices = new Int32Array(items);
    const wrong = items.findIndex((item, k) => item !== indices[k] || item < least || item >= end);
    if (wrong >= 0) this.asInteger(end, least, items[wrong]);
    return indices;
  }

  /** A string with a letter for each item, as indices into `all`. @param {string} all @param {number} [length] */
  letters(all, length) {
    const text = this.asText();
    const places = new Uint8Array(this.sized(text, length).length).map((_, k) => all.indexOf(text[k]));
    if (places.includes(255)) this.refuse(`one of the letters ${all}`, text[places.indexOf(255)]); // −1 as a byte
    return places;
  }

  /**
   * A mapping from nodes to items.
   * @template T
   * @param {number} count
   * @param {(item: Place, node: number) => T} read
   */
  sparse(count, read) {
    /** @type {Map<number, T>} */
    const found = new Map();
    const items = this.record();
    for (const key of Object.keys(items)) {
      const node = this.asInteger(count, 0, Number(key));
      found.set(node, read(new Place(items[key], `${this.where}.${key}`), node));
    }
    return found;
  }
}
