/** Share links: an expression and its values in a URL's fragment, which is untrusted input. */

import { parseDecimal } from "../../viz/frontend/src/base/notation.js";
import { formatFieldNumber } from "./leaves.js";
import { MAX_LENGTH } from "./tokens.js";

/** @typedef {{text: string, numbers: Map<string, number>}} Shared */

const NAME = /^[\p{XID_Start}_]\p{XID_Continue}*$/u;
const MAX_VALUES = 1000; // values

/** @param {Shared} shared @returns {string} such as #f=a*b&n=a:2,b:-3, URL-encoded */
export function createLink({ text, numbers }) {
  const values = [...numbers].map(([name, x]) => `${name}:${formatFieldNumber(x)}`).join(",");
  return `#${new URLSearchParams({ f: text, n: values })}`;
}

/** Parse a link; null if it has no expression. Skips invalid numbers. @param {string} hash @returns {Shared | null} */
export function parseLink(hash) {
  const params = new URLSearchParams(hash.replace(/^#/, ""));
  const text = params.get("f");
  if (text === null || !text.trim()) return null;
  /** @type {Map<string, number>} */
  const numbers = new Map();
  for (const one of (params.get("n") ?? "").split(",").slice(0, MAX_VALUES)) {
    const [name, written = ""] = one.split(":");
    const x = parseDecimal(written);
    if (NAME.test(name) && x !== null && Number.isFinite(x)) numbers.set(name, x);
  }
  return { text: text.slice(0, MAX_LENGTH + 1), numbers };
}
