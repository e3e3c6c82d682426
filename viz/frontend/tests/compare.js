/**
 * Run a job from Python, for comparison: JSON on standard input, its results on standard output.
 *
 *     numbers   → output of `number`, `pretty` and `brief`
 *     fills     → templates with their parts filled in, as text, MathML and LaTeX
 *     graphs    → traces of version 2 and runs with other leaves: every value that the engine computes
 *     strokes   → traces: width, opacity and sign of each edge
 */

import { edgeStrokes } from "../src/drawing/appearance.js";
import { createEngine } from "../src/engine/engine.js";
import { formatBrief, formulaLatex, formulaMathML, formulaText, formatNumber, formatPretty, shortenName, subscript } from "../src/base/notation.js";
import { createPlayback, createTimeline } from "../src/model/history.js";
import { decode } from "../src/model/trace.js";

/** Numbers that JSON cannot represent are strings, as in a trace. */
const read = (x) => (typeof x === "string" && /^(NaN|-?Infinity|-0)$/.test(x) ? Number(x) : x);
const write = (x) => (Number.isFinite(x) && !Object.is(x, -0) ? x : Object.is(x, -0) ? "-0" : String(x));
const all = (array) => Array.from(array, quantity);
const quantity = (x) => (x === null ? null : typeof x === "number" ? write(x) : all(x.cells));

/** A name is wrapped in an array, so that “NaN” can be a name. */
const part = (x) => (Array.isArray(x) ? x[0] : read(x));

function runsOf({ trace, runs, tangents }) {
  const graph = decode(trace);
  const made = createEngine(graph);
  const found = runs.map((leaves) => {
    const { value, local, runs: passes } = made.run(new Map(leaves.map(([leaf, x]) => [leaf, read(x)])));
    return {
      value: all(value),
      local: Array.from({ length: graph.edgeCount }, (_, edge) => quantity(local(edge))),
      passes: passes.map((pass) => ({
        upstream: all(pass.upstream),
        contribution: all(pass.contribution),
        total: all(pass.total),
      })),
    };
  });
  const slopes = (tangents ?? []).map(([key, root]) => made.tangent(key, root));
  return { why: Array.from({ length: graph.count }, (_, node) => made.why(node)), runs: found, tangents: slopes };
}

function strokesIn(trace) {
  const graph = decode(trace);
  const strokes = edgeStrokes(createPlayback(graph, createTimeline(graph)));
  return Array.from({ length: graph.edgeCount }, (_, edge) => {
    const { width, opacity, way } = strokes.of([edge]);
    return way && [width, opacity, way];
  });
}

let input = "";
process.stdin.setEncoding("utf8");
for await (const chunk of process.stdin) input += chunk;
const job = JSON.parse(input);
const results = {
  numbers: (job.numbers ?? []).map(read).map((x) => [formatNumber(x), formatPretty(x), formatBrief(x)]),
  fills: (job.fills ?? []).map(({ template, parts }) => {
    const given = parts.map(part);
    return [formulaText(template, given), formulaMathML(template, given), formulaLatex(template, given)];
  }),
  names: (job.names ?? []).map(([name, limit]) => shortenName(name, limit)),
  subscripts: (job.subscripts ?? []).map(subscript),
  graphs: (job.graphs ?? []).map(runsOf),
  strokes: (job.strokes ?? []).map(strokesIn),
};
process.stdout.write(JSON.stringify(results));
