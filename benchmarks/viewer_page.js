/**
 * Helpers that bench_viewer.py runs in the page: start the player as a notebook does, and time it. A frame ends when
 * its layout is forced, so timings include scripts, styles and layout, but not raster and compositing, which run on
 * other threads.
 */
const now = () => performance.now();
const frame = () => new Promise((done) => requestAnimationFrame(done));

/** Return a model with the Python object's traits, with the interface of anywidget's model. */
function modelOf(state) {
  const listeners = new Map();
  return {
    get: (key) => state[key],
    set(key, value) {
      state[key] = value;
      for (const listener of listeners.get(key) ?? []) listener();
    },
    save_changes() {},
    on: (event, listener) => listeners.set(event.slice(7), [...(listeners.get(event.slice(7)) ?? []), listener]),
    off() {},
  };
}

/** Start the player. Return the milliseconds until it is painted and can be stepped. */
window.openPlayer = async (esm, state) => {
  const packed = Uint8Array.from(atob(state.trace_packed), (letter) => letter.charCodeAt(0));
  const model = modelOf({ ...state, trace_packed: new DataView(packed.buffer) });
  const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  const start = now();
  const { render } = (await import(url)).default;
  await render({ model, el: document.body });
  const root = document.querySelector("body > div").shadowRoot;
  const forward = root.querySelector("button[aria-label^='Step forward']");
  await frame();
  await frame(); // the first frame is painted
  const took = now() - start;
  window.player = { model, root, forward, took };
  return took;
};

/** Return the milliseconds that `act` and the frame it requests take. */
async function cost(act) {
  await frame();
  let began = 0;
  requestAnimationFrame(() => (began = now()));
  const start = now();
  act();
  document.body.offsetHeight;
  const script = now() - start;
  await frame();
  document.body.offsetHeight;
  return script + now() - began;
}

window.stepCosts = async (from, count) => {
  player.model.set("position", from);
  const found = [];
  for (let k = 0; k < count; k += 1) found.push(await cost(() => player.forward.click()));
  return found;
};

/** Open and close each closed block; return the cost of opening each. */
window.expandCosts = async (blocks, most) => {
  const found = [];
  const open = player.model.get("expanded");
  for (const block of blocks.filter((one) => !open.includes(one)).slice(0, most)) {
    found.push(await cost(() => player.model.set("expanded", [...open, block])));
    player.model.set("expanded", open);
  }
  return found;
};

window.setCosts = async (leaf, values) => {
  const found = [];
  for (const x of values) found.push(await cost(() => player.model.set("values", { [leaf]: x })));
  return found;
};

window.openAll = (count) => cost(() => player.model.set("expanded", Array.from({ length: count }, (_, k) => k)));

/** Scroll back and forth for `frames` frames. */
window.pan = async (frames) => {
  const view = player.root.querySelector(".mg-view");
  for (let k = 0; k < frames; k += 1) {
    view.scrollLeft += k % 80 < 40 ? 37 : -37;
    await frame();
  }
};

window.seen = () => player.root.querySelectorAll("[data-id]").length;

/** Return the milliseconds that the what-if engine takes for a forward and backward pass, without drawing. */
window.recomputeCosts = async (state, rounds) => {
  const { decode } = await import("http://player.test/model/trace.js");
  const { engine } = await import("http://player.test/engine/engine.js");
  const packed = Uint8Array.from(atob(state.trace_packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const graph = decode(state.trace_text ? JSON.parse(state.trace_text) : await new Response(stream).json());
  const { run } = engine(graph);
  const leaf = graph.kind.indexOf(0);
  const found = [];
  for (let k = 0; k < rounds; k += 1) {
    const start = now();
    for (let m = 0; m < 10; m += 1) run(new Map([[leaf, k + m / 10]]));
    found.push((now() - start) / 10);
  }
  return found;
};
