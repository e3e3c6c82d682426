/** The search panel: by name, operation, scope or source line. Enter goes to the first result. */

import { submit, tag } from "../base/dom.js";
import { nodeLinks } from "./inspector.js";
import { search } from "../model/search.js";
import { select, tell } from "./session.js";

/** @typedef {import("./session.js").Session} Session */

/** @param {Session} s @param {(nodes: number[]) => void} highlight */
export function finder(s, highlight) {
  let found = /** @type {number[]} */ ([]);
  let [at, said] = [-1, ""];
  const look = (/** @type {any} */ { target }) => {
    const text = target.value.trim();
    found = text ? search(s.graph, text) : [];
    at = -1;
    said = text && `${found.length} found`;
    highlight(found);
    tell(s, "panel");
  };
  const next = submit(() => {
    if (!found.length) return;
    at = (at + 1) % found.length;
    said = `${at + 1} of ${found.length}`;
    select(s, `n${found[at]}`);
    tell(s, "panel");
  });
  const hint = "name, operation, scope or line";
  return () =>
    tag(
      "section.panel",
      { label: "Search" },
      tag(
        "form",
        { onsubmit: next },
        tag("input", { type: "search", placeholder: hint, label: "Search", oninput: look }),
        tag("button", {}, "Next"),
        tag("span.dim", { role: "status" }, said),
      ),
      tag("div.results", {}, ...nodeLinks(s, found, 40)),
    );
}
