/**
 * What bench_viewer.py runs in the page: the player as a notebook starts it, and clocks around it. A frame is over when
 * its layout is forced, so scripts, styles and layout count; raster and compositing, which other threads do, do not.
 */
const now = () => performance.now();
const frame = () => new Promise((done) => requestAnimationFrame(done));

/** The traits of the Python object, as anywidget hands them over. */
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

/** Starts the player; milliseconds until it is painted and can be stepped. */
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
  await frame(); // the first is painted
  const took = now() - start;
  window.player = { model, root, forward, took };
  return took;
};

/** Milliseconds that `act` takes, with the frame that it asks for. */
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

/** Each closed block is opened and closed again. */
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

/** Scrolls for some frames, to and fro. */
window.pan = async (frames) => {
  const view = player.root.querySelector(".mg-view");
  for (let k = 0; k < frames; k += 1) {
    view.scrollLeft += k % 80 < 40 ? 37 : -37;
    await frame();
  }
};

window.seen = () => player.root.querySelectorAll("[data-id]").length;

/** Milliseconds of the what-if engine for a graph, forward and backward, without any drawing. */
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
