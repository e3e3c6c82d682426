/**
 * Text measurement without the browser: widths, and so layouts, are the same on every machine. Widths are those of
 * DejaVu Sans, the widest of the likely fonts, in hundredths of the font size, as in minigrad_viz/trace/notation.py.
 */

/** @type {[string, number][]} */
const LETTER_WIDTHS = [
  ["'ijlIJ", 29],
  [" !,./:;\\|-·′", 36],
  ['"()[]frt', 41],
  ["*?_`csz²³∂", 55],
  ["Fkvxyao", 61],
  ["0123456789$ESbdghnpqueTPL{}", 64],
  ["AVBRXZC", 70],
  ["DGHNUK&w", 82],
  ["#+<=>^~−×≤≥≠∞", 84],
  ["mMOQ", 86],
  ["%@W…—\ufffd", 104],
  ["₀₁₂₃₄₅₆₇₈₉⁰¹⁴⁵⁶⁷⁸⁹", 40],
];
const WIDTHS = new Map(
  LETTER_WIDTHS.flatMap(([group, width]) => [...group].map((letter) => /** @type {const} */ ([letter, width]))),
);

/** @param {string} character */
function fallbackWidth(character) {
  const code = character.codePointAt(0) ?? 0;
  const isZeroWidth =
    (code >= 0x300 && code < 0x370) || (code >= 0x200b && code < 0x2010) || (code >= 0xfe00 && code < 0xfe10);
  if (isZeroWidth) return 0;
  const isWide =
    (code >= 0x1100 && code < 0x1160) || (code >= 0x2e80 && code < 0xd7b0) || (code >= 0xf900 && code < 0xfb00);
  return isWide || code > 0x1f000 ? 135 : 85;
}

/**
 * Return the width of `text` in the unit of `size`, the font size. Bold is 13% wider.
 * @param {string} text
 * @param {number} size
 * @param {boolean} [bold]
 */
export function textWidth(text, size, bold = false) {
  let width = 0;
  for (const character of text) width += WIDTHS.get(character) ?? fallbackWidth(character);
  return width * size * (bold ? 0.0113 : 0.01);
}

/**
 * Truncate `text` to the width `maxWidth`, with an ellipsis. Trailing subscript digits are kept: they may be all that
 * distinguishes two names.
 * @param {string} text
 * @param {number} maxWidth
 * @param {number} size
 * @param {boolean} [bold]
 */
export function fitText(text, maxWidth, size, bold = false) {
  const tail = /[₀-₉]*$/.exec(text)?.[0] ?? "";
  const letters = [...text.slice(0, text.length - tail.length)];
  if (letters.length < 2 || textWidth(text, size, bold) <= maxWidth) return text; // an ellipsis is wider than a letter
  let width = textWidth(`…${tail}`, size, bold);
  const count = letters.findIndex((letter) => (width += textWidth(letter, size, bold)) > maxWidth);
  return `${letters.slice(0, count).join("")}…${tail}`;
}

/**
 * Format a number in at most the width `maxWidth`: with six digits, or fewer where that makes it shorter, so that 1089 does
 * not become 1000. What-if may produce a number longer than its card was measured for.
 * @param {number} x
 * @param {number} maxWidth
 * @param {number} size
 * @param {(x: number) => string} format such as `pretty` of notation.js
 */
export function fitNumber(x, maxWidth, size, format) {
  let text = format(x);
  for (let digits = 6; digits > 0 && textWidth(text, size) > maxWidth; digits -= 1) {
    const rounded = format(Number(x.toPrecision(digits))).replace(/\.0$/, "");
    if (rounded.length < text.length) text = rounded;
  }
  return text;
}
