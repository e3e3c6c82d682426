/** Where in a text something is wrong: its line, and a caret below the place. */

const [BEFORE, MARKED, AFTER] = [24, 30, 12]; // characters of a longer line: before the place, of it, and behind it

/**
 * @param {string} text @param {{from: number, to: number}} place
 * @returns {{line: string, caret: string}}
 */
export function placeIn(text, { from, to }) {
  const start = text.lastIndexOf("\n", from - 1) + 1;
  const ends = text.indexOf("\n", from);
  const whole = text.slice(start, ends < 0 ? text.length : ends);
  const first = from - start;
  const last = Math.min(Math.max(to - start, first + 1), first + MARKED, Math.max(whole.length, first + 1));
  const left = first > BEFORE ? first - BEFORE : 0;
  const right = Math.min(whole.length, last + AFTER);
  const [dots, end] = [left ? "…" : "", right < whole.length ? "…" : ""];
  const line = `${dots}${whole.slice(left, right)}${end}`.replaceAll("\t", " ");
  const before = [...whole.slice(left, first)].length + dots.length;
  return { line, caret: `${" ".repeat(before)}${"^".repeat([...whole.slice(first, last)].length || 1)}` };
}
