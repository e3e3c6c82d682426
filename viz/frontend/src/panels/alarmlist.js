/** The alarms: what went wrong, where it began, and what it reached. A click goes there. */

import { h, refill, setText } from "./dom.js";
import { nodeLink } from "./inspector.js";
import { select } from "./session.js";

const ALARM_NAMES = /** @type {Record<string, string>} */ ({ nan: "NaN", inf: "Infinity", gradient: "Gradient" });

/** @param {any} s @param {(nodes: number[]) => void} highlight */
export function alarms(s, highlight) {
  const reach = h("div", { class: "reach dim", role: "status" });
  const items = s.graph.notes.map((/** @type {any} */ note, /** @type {number} */ i) => {
    const act = () => {
      if (note.node >= 0) select(s, `n${note.node}`);
      highlight(note.nodes);
      refill(reach, ...reachOf(s, note));
    };
    const name = ALARM_NAMES[note.kind] ?? note.kind[0].toUpperCase() + note.kind.slice(1);
    return h(
      "li",
      {},
      h("button", { class: "alarm", "data-key": `a${i}`, onclick: act }, h("b", {}, `! ${name} `), note.text),
    );
  });
  const element = h("section", { class: "panel", "aria-label": "Alarms" }, h("ul", { class: "list" }, ...items), reach);
  if (!items.length) setText(reach, "No alarms: every number is finite, and every gradient is of this graph.");
  return { element, update() {} };
}

/** What an alarm reached, as links. @param {any} s @param {any} note */
function reachOf(s, note) {
  const others = note.nodes.filter((/** @type {number} */ node) => node !== note.node);
  if (!others.length) return ["It reached no other node."];
  const more = others.length > 12 ? `and ${others.length - 12} more` : "";
  return [
    `It reached ${others.length} other ${others.length === 1 ? "node" : "nodes"}: `,
    ...others.slice(0, 12).flatMap((/** @type {number} */ node) => [nodeLink(s, node), " "]),
    more,
  ];
}
