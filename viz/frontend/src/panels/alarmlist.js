/** The alarms panel: what went wrong, where it originated, and what it affected. Clicking an alarm selects its node. */

import { tag } from "../base/dom.js";
import { nodeLinks } from "./inspector.js";
import { select, notify } from "./session.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("../base/types.js").Note} Note */

const ALARM_NAMES = /** @type {Record<string, string>} */ ({ nan: "NaN", inf: "Infinity", replayed: "Note" });

/** @param {Session} s @param {(nodes: number[]) => void} highlight */
export function alarmsPanel(s, highlight) {
  const { notes } = s.graph;
  const emptyText = "No alarms: all values are finite and no gradient is stale.";
  let affected = /** @type {import("../base/dom.js").Child[]} */ (notes.length ? [] : [emptyText]);
  const item = (/** @type {Note} */ note) => {
    const onClick = () => {
      if (note.node >= 0) select(s, `n${note.node}`);
      highlight(note.nodes);
      affected = affectedLinks(s, note);
      notify(s, "panel");
    };
    const name = ALARM_NAMES[note.kind] ?? note.kind[0].toUpperCase() + note.kind.slice(1);
    return tag("li", {}, tag("button.alarm", { onclick: onClick }, tag("b", {}, `! ${name} `), note.text));
  };
  const list = tag("ul.list", {}, ...notes.map(item));
  return () =>
    tag(
      "section.panel",
      { label: "Alarms" },
      list,
      tag("div.reach.dim", { role: "status" }, ...affected),
    );
}

/** Return links to the nodes that an alarm affected. @param {Session} s @param {Note} note */
function affectedLinks(s, note) {
  const others = note.nodes.filter((node) => node !== note.node);
  if (!others.length) return ["It affected no other node."];
  return [
    `It affected ${others.length} other ${others.length === 1 ? "node" : "nodes"}: `,
    ...nodeLinks(s, others, 12),
  ];
}
