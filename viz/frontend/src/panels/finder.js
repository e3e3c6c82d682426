/** Search: by name, operation, scope or source line. Enter goes to the first that was found. */

import { h, refill, setText } from "./dom.js";
import { nodeLink } from "./inspector.js";
import { search } from "../model/search.js";
import { select } from "./session.js";

/** @param {any} s @param {(nodes: number[]) => void} highlight */
export function finder(s, highlight) {
  const input = h("input", { type: "search", placeholder: "name, operation, scope or line", "aria-label": "Search" });
  const count = h("span", { class: "dim", role: "status" });
  const results = h("div", { class: "results" });
  /** @type {number[]} */
  let found = [];
  let at = -1;
  input.addEventListener("input", () => {
    const text = input.value.trim();
    found = text ? search(s.graph, text) : [];
    at = -1;
    setText(count, text ? `${found.length} found` : "");
    refill(results, ...found.slice(0, 40).flatMap((node) => [nodeLink(s, node), " "]), found.length > 40 && "…");
    highlight(found);
  });
  const next = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!found.length) return;
    at = (at + 1) % found.length;
    select(s, `n${found[at]}`);
    setText(count, `${at + 1} of ${found.length}`);
  };
  const element = h(
    "section",
    { class: "panel", "aria-label": "Search" },
    h("form", { onsubmit: next }, input, h("button", {}, "Next"), count),
    results,
  );
  return { element, input, update() {} };
}
