/** What the player needs of Math, under the short names that formulas have for it. */

export const { abs, ceil, exp, floor, log10, max, min, sqrt } = Math;
