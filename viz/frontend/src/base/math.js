/** The functions of numbers that are used most, by names of their own, which the build can shorten. */

export const { abs, ceil, exp, floor, hypot, log10, max, min, round, sign, sqrt } = Math;

export const { isFinite: finite, isInteger: whole } = Number;
