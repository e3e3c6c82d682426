/** Share links: an expression and its values in a URL's fragment, which is untrusted input. */

import { readNumber } from "../../viz/frontend/src/base/notation.js";
import { written } from "./leaves.js";
import { LONGEST } from "./tokens.js";

/** @typedef {{text: string, numbers: Map<string, number>}} Shared */

const NAME = /^[\p{XID_Start}_]\p{XID_Continue}*$/u;
const MOST = 1000; // values

/** @param {Shared} shared @returns {string} such as #f=a*b&n=a:2,b:-3, URL-encoded */
export function linkOf({ text, numbers }) {
  const given = [...numbers].map(([name, x]) => `${name}:${written(x)}`).join(",");
  return `#${new URLSearchParams({ f: text, n: given })}`;
}

/** Parse a link; null if it has no expression. Skips invalid numbers. @param {string} hash @returns {Shared | null} */
export function readLink(hash) {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  const text = found.get("f");
  if (text === null || !text.trim()) return null;
  /** @type {Map<string, number>} */
  const numbers = new Map();
  for (const one of (found.get("n") ?? "").split(",").slice(0, MOST)) {
    const [name, written = ""] = one.split(":");
    const x = readNumber(written);
    if (NAME.test(name) && x !== null && Number.isFinite(x)) numbers.set(name, x);
  }
  return { text: text.slice(0, LONGEST + 1), numbers };
}
