/**
 * Reads traces as the player does, one a line, and plays them to their ends: a line of JSON for each says how it went.
 *
 *     {"text": a trace}  →  {"wrong": null or a sentence, "seconds": of the processor, "bytes": held outside the heap}
 */

import { createInterface } from "node:readline";

import { createEngine } from "../../viz/frontend/src/engine/engine.js";
import { readStops } from "../../viz/frontend/src/model/tours.js";
import { decode } from "../../viz/frontend/src/model/trace.js";
import { createSession, lastPosition, moveTo } from "../../viz/frontend/src/panels/session.js";

const TOLD = /^(This trace cannot be shown: |Stop \d+ of the tour )\S+ \S+/;

function read(text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  try {
    const graph = decode(data);
    readStops(graph, { last: graph.count + graph.edgeCount });
    play(graph);
  } catch (error) {
    if (Object.getPrototypeOf(error) !== Error.prototype || !TOLD.test(error.message)) return `${error.stack}`;
    if (error.message.length > 1000) return `it is told in ${error.message.length} characters`;
  }
  return null;
}

/** There and back, with what is open, and computed again. */
function play(graph) {
  const session = createSession(graph);
  for (let at = 0; at <= lastPosition(session); at += 1) moveTo(session, at);
  moveTo(session, 0);
  for (let node = 0; node < graph.count; node += 1) graph.title(node);
  const made = createEngine(graph);
  made.run(new Map());
  for (let node = 0; node < graph.count; node += 1) made.why(node);
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const before = process.memoryUsage().arrayBuffers;
  const { user, system } = process.cpuUsage();
  let wrong;
  try {
    wrong = read(JSON.parse(line).text);
  } catch (error) {
    wrong = `${error.stack}`;
  }
  const spent = process.cpuUsage({ user, system });
  if (wrong === null && globalThis.ran !== undefined) wrong = "it ran what the trace says";
  const bytes = process.memoryUsage().arrayBuffers - before;
  process.stdout.write(`${JSON.stringify({ wrong, seconds: (spent.user + spent.system) / 1e6, bytes })}\n`);
}
