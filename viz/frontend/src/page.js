/**
 * Starts players in a page: each figure that carries a trace gets one above its picture, which stays for print and for
 * browsers without scripts. Keys that nothing else on the page wants go to its only player, or to the one touched last;
 * an address that ends in `#step=5` shows the only player there.
 */

import { h, refusal } from "./base/dom.js";
import { mount } from "./player.js";

/** @typedef {import("./player.js").Player} Player */

const KEYS = ["ArrowLeft", "ArrowRight", " ", "Home", "End"];

/** The players of the page. @type {Player[]} */
const started = [];
let touched = /** @type {Player | undefined} */ (undefined);

/**
 * Puts a player into every `figure.minigrad` with a trace that has none yet, and returns the new ones. Where a trace
 * cannot be played the picture stays, and the reason is written under it.
 * @param {ParentNode} root
 * @returns {Player[]}
 */
export function startAll(root) {
  /** @type {Player[]} */
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
  const first = players.length > 0 && !started.length;
  started.push(...players);
  if (first) {
    document.addEventListener("pointerdown", touch);
    document.addEventListener("keydown", passOn);
    addEventListener("hashchange", goToStep);
    goToStep();
  }
  return players;
}

/** The player of a page that has one. */
const only = () => (document.querySelectorAll("figure.minigrad>script").length === 1 ? started[0] : undefined);

/** Shows the step that the address names. */
function goToStep() {
  const [, step] = /^#step=(\d+)$/.exec(location.hash) ?? [];
  const player = only();
  if (step && player) player.position = Number(step);
}

/** Remembers which player was touched last; undefined where something else was. @param {Event} event */
function touch({ target }) {
  touched = started.find(({ element }) => element.contains(/** @type {Node} */ (target)));
}

/** Gives a key that was pressed where nothing has the focus to a player in sight. @param {KeyboardEvent} event */
function passOn(event) {
  if (event.target !== document.body || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.defaultPrevented || !KEYS.includes(event.key)) return;
  const player = touched ?? only();
  if (!player) return;
  const { top, bottom } = player.element.getBoundingClientRect();
  if (top < innerHeight && bottom > 0) player.press(event);
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
