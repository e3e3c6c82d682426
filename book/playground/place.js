/** Where in a text something is wrong: its line, and a caret below the place. */

const [BEFORE, AFTER] = [24, 12]; // characters of a longer line around the place

/**
 * @param {string} text @param {{from: number, to: number}} place
 * @returns {{line: string, caret: string}}
 */
export function placeIn(text, { from, to }) {
  const start = text.lastIndexOf("\n", from - 1) + 1;
  const ends = text.indexOf("\n", from);
  const whole = text.slice(start, ends < 0 ? text.length : ends);
  const [first, last] = [from - start, Math.max(from + 1, Math.min(to, start + whole.length)) - start];
  const left = first > BEFORE + 1 ? first - BEFORE : 0;
  const right = Math.min(whole.length, Math.max(last, left + BEFORE) + AFTER);
  const [dots, end] = [left ? "…" : "", right < whole.length ? "…" : ""];
  const shown = `${dots}${whole.slice(left, right)}${end}`.replaceAll("\t", " ");
  const marked = [...whole.slice(first, Math.min(last, right))].length || 1;
  const before = [...whole.slice(left, first)].length + dots.length;
  return { line: shown, caret: `${" ".repeat(before)}${"^".repeat(marked)}` };
}
