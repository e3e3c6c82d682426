/**
 * Run a job from Python, for comparison. Standard input: the catalogue, and expressions, each with the values of its
 * leaves and optionally Python's trace. Standard output: for each expression its trace and the formulas that both
 * traces show, or its mistake.
 */

import { formulaParts } from "../../../viz/frontend/src/drawing/cards.js";
import { formulaMathML, formulaText } from "../../../viz/frontend/src/base/notation.js";
import { decode } from "../../../viz/frontend/src/model/trace.js";
import { createCatalogue } from "../catalogue.js";
import { parse } from "../parser.js";
import { buildTape } from "../tape.js";
import { Mistake } from "../tokens.js";
import { createTracer } from "../tracer.js";

/** Return all formulas that a player shows for a trace: of nodes, then of edges. */
function formulasOf(trace) {
  const graph = decode(trace);
  const shown = (at, node) => {
    if (at < 0) return null;
    const parts = formulaParts(graph, node);
    return [formulaText(graph.formulas[at], parts), formulaMathML(graph.formulas[at], parts)];
  };
  return [
    ...Array.from(graph.nodeFormula, shown),
    ...Array.from(graph.edgeFormula, (at, edge) => shown(at, graph.result[edge])),
  ];
}

function answer({ text, numbers, expected }) {
  try {
    const tape = buildTape(parse(text, catalogue), catalogue);
    const trace = createTracer(tape, catalogue).trace(new Map(Object.entries(numbers ?? {})));
    return {
      leaves: [...tape.leaves.keys()],
      trace,
      formulas: formulasOf(trace),
      expected: expected && formulasOf(expected),
    };
  } catch (error) {
    if (!(error instanceof Mistake)) throw error;
    return { mistake: error.message, from: error.from, to: error.to };
  }
}

let input = "";
process.stdin.setEncoding("utf8");
for await (const chunk of process.stdin) input += chunk;
const job = JSON.parse(input);
const catalogue = createCatalogue(job.catalogue);
process.stdout.write(JSON.stringify(job.texts.map(answer)));
