/** The most used functions of Math and Number, as bindings that the build can shorten. */

export const { abs, ceil, exp, floor, hypot, log10, max, min, round, sign, sqrt } = Math;

export const { isFinite: isFinite, isInteger: isInteger } = Number;
