/**
 * Start the players of a page: each figure with a trace gets one above its picture, which remains for printing and for
 * browsers without scripts. Unhandled keys go to the only player, or to the last one clicked; a URL ending in `#step=5`
 * shows the only player at that step.
 */

import { h, showError } from "./base/dom.js";
import { mount } from "./player.js";

/** @typedef {import("./player.js").Player} Player */

const KEYS = ["ArrowLeft", "ArrowRight", " ", "Home", "End"];

/** The players of the page. @type {Player[]} */
const allPlayers = [];
let lastTouched = /** @type {Player | undefined} */ (undefined);

/**
 * Mount a player in every `figure.minigrad` that has a trace and no player; return the new ones. If a trace cannot be
 * played, the picture stays, with the error below.
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
      players.push(mount(host, JSON.parse(script.textContent ?? ""), readOptions(figure)));
      figure.append(createPrintStyle());
    } catch (error) {
      showError(host, error);
    }
  }
  const first = players.length > 0 && !allPlayers.length;
  allPlayers.push(...players);
  if (first) {
    document.addEventListener("pointerdown", recordTouch);
    document.addEventListener("keydown", forwardKey);
    addEventListener("hashchange", goToStep);
    goToStep();
  }
  return players;
}

/** Return the player of a page that has exactly one. */
const onlyPlayer = () => (document.querySelectorAll("figure.minigrad>script").length === 1 ? allPlayers[0] : undefined);

/** Go to the step in the URL. */
function goToStep() {
  const [, step] = /^#step=(\d+)$/.exec(location.hash) ?? [];
  const player = onlyPlayer();
  if (step && player) player.position = Number(step);
}

/** Record which player was clicked last, if any. @param {Event} event */
function recordTouch({ target }) {
  lastTouched = allPlayers.find(({ element }) => element.contains(/** @type {Node} */ (target)));
}

/** Forward a key pressed without focus to a visible player. @param {KeyboardEvent} event */
function forwardKey(event) {
  if (event.target !== document.body || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.defaultPrevented || !KEYS.includes(event.key)) return;
  const player = lastTouched ?? onlyPlayer();
  if (!player) return;
  const { top, bottom } = player.element.getBoundingClientRect();
  if (top < innerHeight && bottom > 0) player.press(event);
}

/** Show the player on screen, and the picture in print. */
function createPrintStyle() {
  const screen = "@media screen{.minigrad-player~*{display:none!important}}";
  return h("style", {}, `${screen}@media print{.minigrad-player{display:none}}`);
}

/**
 * Parse a figure's options: JSON in `data-minigrad`.
 * @param {Element} figure
 * @returns {Record<string, unknown>}
 */
function readOptions(figure) {
  return JSON.parse(figure.getAttribute("data-minigrad") ?? "{}");
}
