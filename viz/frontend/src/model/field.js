/** A cursor into trace data that validates what it reads, and reports the path of invalid data. */

import { isInteger } from "../base/math.js";
import { shorten } from "../base/notation.js";

/** @typedef {import("../base/types.js").Cells} Cells */
/** @typedef {import("../base/types.js").Quantity} Quantity */

/** @param {string} reason @returns {never} */
export function rejectTrace(reason) {
  throw new Error(`This trace cannot be shown: ${reason}.`);
}

/** Format data as JSON, if possible. @param {unknown} data */
export const formatJson = (data) => {
  try {
    return shorten(String(JSON.stringify(data)), 60);
  } catch {
    return "deeply nested data"; // too deep for JSON
  }
};

/** A value in a trace with its path. */
export class Field {
  /** @param {any} data parsed JSON @param {string} path a path such as trace.nodes.op */
  constructor(data, path) {
    this.data = data;
    this.path = path;
  }

  /** @param {string} expected @param {unknown} [found] @returns {never} */
  reject(expected, found = this.data) {
    if (found === undefined) rejectTrace(`${this.path} is missing`);
    return rejectTrace(`${this.path} is ${formatJson(found)}; expected ${expected}`);
  }

  /** @returns {Record<string, any>} */
  asObject() {
    const { data } = this;
    return typeof data === "object" && data !== null && !Array.isArray(data) ? data : this.reject("an object");
  }

  /** @param {string} name */
  at(name) {
    return new Field(this.asObject()[name], `${this.path}.${name}`);
  }

  /**
   * Return what `read` returns; `fallback` if the value is missing or null.
   * @template T, N
   * @param {N} fallback
   * @param {(place: Field) => T} read
   */
  orElse(fallback, read) {
    return this.data == null ? fallback : read(this);
  }

  /** @returns {string} */
  asString() {
    return typeof this.data === "string" ? this.data : this.reject("a string");
  }

  /** A string or null. */
  asOptionalString() {
    return this.orElse(null, () => this.asString());
  }

  /** A number. JSON cannot represent some, which are strings. @returns {number} */
  asNumber() {
    const { data } = this;
    if (typeof data === "number") return data;
    return ["NaN", "Infinity", "-Infinity"].includes(data) ? Number(data) : this.reject("a number");
  }

  /** A scalar, one of the arrays, or null if unknown. @param {Cells[]} arrays @returns {Quantity | null} */
  quantity(arrays) {
    if (typeof this.data === "object") return this.orElse(null, () => arrays[this.at("array").asInteger(arrays.length)]);
    return this.asNumber();
  }

  /** An integer in [`min`, `end`). @param {number} [end] @param {number} [min] @returns {number} */
  asInteger(end = Infinity, min = 0, found = this.data) {
    if (isInteger(found) && found >= min && found < end) return found;
    return this.reject(`an integer from ${min} to ${end - 1}`, found);
  }

  /** @param {number} [length] @returns {any[]} */
  asList(length) {
    return Array.isArray(this.data) ? this.checkLength(this.data, length) : this.reject("a list");
  }

  /** @template {ArrayLike<any>} T @param {T} items @param {number} [length] */
  checkLength(items, length = items.length) {
    if (items.length !== length) rejectTrace(`${this.path} has ${items.length} items; expected ${length}`);
    return items;
  }

  /** @template T @param {(item: Field, at: number) => T} read */
  asItems(read) {
    return this.asList().map((item, at) => read(new Field(item, `${this.path}[${at}]`), at));
  }

  /**
   * A column of numbers and of items that `read` parses.
   * @template T
   * @param {(item: Field) => T} read
   * @param {number} length
   * @returns {(T | number)[]}
   */
  column(read, length) {
    return this.asList(length).map((item) => (typeof item === "number" ? item : read(new Field(item, this.path))));
  }

  /** A column of integers. @param {number} end @param {number} [length] @param {number} [min] */
  indices(end, length, min = 0) {
    const items = this.asList(length);
    for (const item of items) if (typeof item !== "number") this.asInteger(end, min, item);
    const indices = new Int32Array(items);
    const invalid = items.findIndex((item, k) => item !== indices[k] || item < min || item >= end);
    if (invalid >= 0) this.asInteger(end, min, items[invalid]);
    return indices;
  }

  /** A string with a letter for each item, as indices into `all`. @param {string} all @param {number} [length] */
  letters(all, length) {
    const text = this.asString();
    const indices = new Uint8Array(this.checkLength(text, length).length).map((_, k) => all.indexOf(text[k]));
    if (indices.includes(255)) this.reject(`one of the letters ${all}`, text[indices.indexOf(255)]); // −1 as a byte
    return indices;
  }

  /**
   * A mapping from nodes to items.
   * @template T
   * @param {number} count
   * @param {(item: Field, node: number) => T} read
   */
  sparse(count, read) {
    /** @type {Map<number, T>} */
    const result = new Map();
    const items = this.asObject();
    for (const key of Object.keys(items)) {
      const node = this.asInteger(count, 0, Number(key));
      result.set(node, read(new Field(items[key], `${this.path}.${key}`), node));
    }
    return result;
  }
}
