/**
 * Starts players in a page: each figure that carries a trace gets one above its picture, which stays for print and for
 * readers without scripts.
 */

import { h, refusal } from "./panels/dom.js";
import { mount } from "./player.js";

/**
 * Puts a player into every `figure.minigrad` with a trace that has none yet, and returns the new ones. Where a trace
 * cannot be played the picture stays, and the reason is written under it.
 * @param {ParentNode} root
 * @returns {import("./player.js").Player[]}
 */
export function startAll(root) {
  /** @type {import("./player.js").Player[]} */
  const players = [];
  for (const figure of root.querySelectorAll("figure.minigrad")) {
    const script = figure.querySelector("script.minigrad-trace");
    if (!script || figure.querySelector(".minigrad-player")) continue;
    const host = h("div.minigrad-player");
    figure.prepend(host);
    try {
      players.push(mount(host, JSON.parse(script.textContent ?? ""), optionsOf(figure)));
      figure.append(printed());
    } catch (error) {
      refusal(host, error);
    }
  }
  return players;
}

/** On a screen the player is seen, on paper what was there before. */
function printed() {
  const screen = "@media screen{.minigrad-player~*{display:none!important}}";
  return h("style", {}, `${screen}@media print{.minigrad-player{display:none}}`);
}

/**
 * How a figure wants its player: `data-minigrad` holds options as JSON.
 * @param {Element} figure
 * @returns {Record<string, unknown>}
 */
function optionsOf(figure) {
  return JSON.parse(figure.getAttribute("data-minigrad") ?? "{}");
}
