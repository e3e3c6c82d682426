/** The search panel: by name, operation, scope or source line. Enter goes to the first result. */

import { onSubmit, tag } from "../base/dom.js";
import { nodeLinks } from "./inspector.js";
import { search } from "../model/search.js";
import { select, notify } from "./session.js";

/** @typedef {import("./session.js").Session} Session */

/** @param {Session} s @param {(nodes: number[]) => void} highlight */
export function searchPanel(s, highlight) {
  let results = /** @type {number[]} */ ([]);
  let [current, status] = [-1, ""];
  const onInput = (/** @type {any} */ { target }) => {
    const text = target.value.trim();
    results = text ? search(s.graph, text) : [];
    current = -1;
    status = text && `${results.length} found`;
    highlight(results);
    notify(s, "panel");
  };
  const next = onSubmit(() => {
    if (!results.length) return;
    current = (current + 1) % results.length;
    status = `${current + 1} of ${results.length}`;
    select(s, `n${results[current]}`);
    notify(s, "panel");
  });
  const hint = "name, operation, scope or line";
  return () =>
    tag(
      "section.panel",
      { label: "Search" },
      tag(
        "form",
        { onsubmit: next },
        tag("input", { type: "search", placeholder: hint, label: "Search", oninput: onInput }),
        tag("button", {}, "Next"),
        tag("span.dim", { role: "status" }, status),
      ),
      tag("div.results", {}, ...nodeLinks(s, results, 40)),
    );
}
