/**
 * The player as an anywidget: synchronises the traits of the Python object with the state of the player. All values are
 * computed in the browser, so a linked slider needs no kernel.
 */

import { h, showError } from "./base/dom.js";
import { mount } from "./player.js";

/**
 * The model that anywidget passes: the traits of the Python object.
 * @typedef {object} Model
 * @property {(key: string) => any} get
 * @property {(key: string, value: any) => void} set
 * @property {() => void} save_changes
 * @property {(event: string, listener: () => void) => void} on
 * @property {(event: string, listener: () => void) => void} off
 */

/** The traits with the same name as a state property. */
const SYNCED = ["speed", "granularity", "expanded", "selected", "position", "playing"];

/**
 * Render a view, as anywidget requires; return its cleanup function.
 * @param {{model: Model, el: HTMLElement}} view
 */
export async function render({ model, el }) {
  const host = h("div");
  el.append(host);
  const state = Object.fromEntries(SYNCED.map((key) => [key, model.get(key)]));
  try {
    const player = mount(host, await readTrace(model), {
      ...state,
      values: readValues(model),
      height: model.get("height"),
    });
    let stop = synchronize(model, player);
    const refollow = () => {
      stop();
      stop = synchronize(model, player);
    };
    model.on("change:leaves", refollow); // an element got its own trait
    countViews(model, 1);
    return () => {
      countViews(model, -1);
      model.off("change:leaves", refollow);
      stop();
      player.destroy();
    };
  } catch (error) {
    showError(host, error);
    return () => {};
  }
}

/** Count the views, so that the kernel can release a player without views. @param {Model} model @param {number} by */
function countViews(model, by) {
  model.set("views", model.get("views") + by);
  model.save_changes();
}

/**
 * Return the values of changed leaves, set in `values` or in a leaf's own trait.
 * @param {Model} model @returns {Record<string, number>}
 */
function readValues(model) {
  let values = model.get("values");
  for (const [trait, [name, original]] of Object.entries(model.get("leaves"))) {
    const number = model.get(trait);
    if (number !== original) values = { ...values, [name]: number }; // a spread, which also handles a leaf called __proto__
  }
  return values;
}

/**
 * Keep a model and a player in sync. Return a function that stops it.
 * @param {Model} model @param {import("./player.js").Player} player
 */
function synchronize(model, player) {
  const leaves = Object.entries(/** @type {Record<string, [string, number]>} */ (model.get("leaves")));
  /** @type {(() => void)[]} */
  const cleanups = [];
  let busy = false; // while a change is being synchronised
  const push = () => {
    let changed = false;
    const setTrait = (/** @type {string} */ key, /** @type {any} */ value) => {
      if (JSON.stringify(model.get(key)) === JSON.stringify(value)) return;
      model.set(key, value);
      changed = true;
    };
    const state = player.state();
    const { values } = state;
    for (const [key, value] of Object.entries(state)) setTrait(key, value);
    for (const [trait, [name, original]] of leaves) setTrait(trait, Object.hasOwn(values, name) ? values[name] : original);
    if (changed) model.save_changes();
  };
  const guard = (/** @type {() => void} */ act) => () => {
    if (busy) return;
    busy = true;
    try {
      act();
      push(); // the resulting state: a position beyond the end becomes the end
    } finally {
      busy = false;
    }
  };
  const listenTo = (/** @type {string} */ key, /** @type {() => void} */ act) => {
    const listener = guard(act);
    model.on(`change:${key}`, listener);
    cleanups.push(() => model.off(`change:${key}`, listener));
  };
  for (const key of SYNCED) listenTo(key, () => player.restore({ [key]: model.get(key) }));
  listenTo("values", () => player.restore({ values: model.get("values") }));
  for (const [trait, [name]] of leaves) listenTo(trait, () => player.set(name, model.get(trait)));
  cleanups.push(player.on("change", guard(() => {})));
  guard(() => {})();
  return () => cleanups.forEach((end) => end());
}

/**
 * Read the trace: JSON, or compressed if it is large.
 * @param {Model} model
 */
async function readTrace(model) {
  const text = model.get("trace_text");
  if (text) return JSON.parse(text);
  const stream = new Blob([model.get("trace_packed")]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}
