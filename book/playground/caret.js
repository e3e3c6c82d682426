/** The line of a mistake, with carets below the span. */

const [BEFORE, MARKED, AFTER] = [24, 30, 12]; // maximum characters before, inside and after the span in a long line

/**
 * @param {string} text @param {{from: number, to: number}} place
 * @returns {{line: string, caret: string}}
 */
export function caretAt(text, { from, to }) {
  const start = text.slice(0, from).lastIndexOf("\n") + 1;
  const ends = text.indexOf("\n", from);
  const end = ends < 0 ? text.length : ends;
  const before = [...text.slice(start, from)];
  const rest = [...text.slice(from, end)];
  const length = Math.max(1, Math.min([...text.slice(from, Math.min(to, end))].length, MARKED));
  const left = before.length > BEFORE ? ["…", ...before.slice(-BEFORE)] : before;
  const right = rest.length > length + AFTER ? [...rest.slice(0, length + AFTER), "…"] : rest;
  const line = [...left, ...right].join("").replaceAll("\t", " ");
  return { line, caret: " ".repeat(left.length) + "^".repeat(length) };
}
