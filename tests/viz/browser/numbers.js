/**
 * Read a player's values back from its page: from its state, and from every text that shows one. Loaded by
 * test_numbers.py, which compares both with the engine.
 */

const texts = (elements) => Array.from(elements, (one) => one.textContent);
const seen = (element) => element !== null && element.closest("[visibility=hidden]") === null;

/** Return the texts on a node's card. */
function cardOf(group) {
  const read = (selector) => group.querySelector(selector)?.textContent ?? null;
  return {
    state: group.getAttribute("class").split(" ").filter((name) => /^(wait|partial|final|blocked|pale|bad)$/.test(name)),
    value: read("text.num:not(.grad)"),
    grad: read(".grad"),
    sum: read(".sum"),
    pictures: group.querySelectorAll("image").length,
    said: group.getAttribute("aria-label"),
  };
}

/** Return the rows of the inspector by term. */
function factsOf(root) {
  const rows = [...root.querySelectorAll(".inspector dl .row")];
  const of = (term) => rows.find((row) => row.querySelector("dt").textContent === term);
  const small = of("gradient")?.querySelector("small");
  return {
    title: root.querySelector(".inspector .title").textContent,
    value: of("value")?.querySelector(".fw").textContent ?? null,
    gradient: of("gradient")?.querySelector(".bw").textContent ?? null,
    state: small?.textContent.trim() ?? null,
  };
}

/** Return every text with a number in it. */
function textsOf(root) {
  const words = [...root.querySelectorAll("g:has(> .pill)")].at(-1);
  const labels = texts(root.querySelectorAll(".mg-drawing text.label")).map((text) => text.split(" = ").at(-1));
  return {
    count: root.querySelector(".count").textContent,
    chip: root.querySelector(".say .chip").textContent,
    formula: root.querySelector(".say .formula").textContent,
    aria: root.querySelector(".say [aria-live]").textContent,
    product: seen(words) ? words.querySelector("text").textContent : "",
    done: root.querySelectorAll(".wire.done").length,
    labels: labels.filter(Boolean).sort(),
    cards: Object.fromEntries([...root.querySelectorAll("[data-id^=n]")].map((g) => [g.dataset.id.slice(1), cardOf(g)])),
    table: [...root.querySelectorAll("tr[aria-rowindex]")].map((row) => texts([row.cells[2], row.cells[3]])),
    current: root.querySelector("tr[aria-current]")?.rowIndex ?? 0,
    inspector: factsOf(root),
  };
}

/** Return a reader of a player: `state` has its values, `texts` its texts; arrays are stored once in `arrays`. */
function readerOf(player, count) {
  const arrays = [];
  const places = new Map();
  const plain = (x) => {
    if (x === null || typeof x !== "object" || !x.cells) return x;
    if (!places.has(x)) places.set(x, arrays.push({ ...x, cells: [...x.cells] }) - 1);
    return { array: places.get(x) };
  };
  const fields = (item) => Object.fromEntries(Object.entries(item).map(([key, x]) => [key, plain(x)]));
  const nodes = Array.from({ length: count }, (_, node) => node);
  return {
    arrays,
    texts: () => textsOf(player.element.shadowRoot),
    state: () => ({
      position: player.position,
      moment: fields(player.moment()),
      values: nodes.map((node) => plain(player.value(node))),
      gradients: nodes.map((node) => fields(player.gradient(node))),
    }),
  };
}

const coded = (_, x) => (typeof x === "number" && !Number.isFinite(x) ? String(x) : x);

/** Replace the page with a player of a trace, with its table open. */
export function open(mount, text, options = {}) {
  window.player?.destroy();
  const host = document.createElement("div");
  document.body.replaceChildren(host);
  const data = JSON.parse(text);
  window.player = mount(host, data, { position: 0, selected: "step", ...options });
  const root = host.shadowRoot;
  [...root.querySelectorAll(".tabs button")].find((one) => one.textContent === "Table").click();
  root.querySelector(".short").style.setProperty("--mg-view-height", "4000px"); // so that cards show everything
  window.reader = readerOf(window.player, data.nodes.kind.length);
  return null;
}

/** Return the current state and texts. */
export const read = () => JSON.stringify({ ...reader.texts(), ...reader.state(), arrays: reader.arrays }, coded);

/** Return the state and texts at a position. */
export function at(_, position) {
  player.position = position;
  return read();
}

/** Set the values of leaves. */
export const set = (_, values) => Object.entries(values).forEach(([name, x]) => player.set(name, x));

/**
 * Step through all positions and back, then scrub to some. Return what was shown on the way forward, and any
 * differences on the way back and after scrubbing.
 */
export function walk(mount, text, scrubs) {
  open(mount, text);
  const now = () => JSON.stringify({ ...reader.texts(), ...reader.state() }, coded);
  const forward = [];
  const unlike = [];
  const compare = (how) => {
    const again = now();
    const { position } = player;
    if (again !== forward[position]) unlike.push([how, position, forward[position] ?? "", again]);
  };
  player.step(1);
  player.step(-1);
  for (;;) {
    forward.push(now());
    if (player.step(1), player.position < forward.length) break;
  }
  for (let left = forward.length; left > 1; left -= 1) {
    player.step(-1);
    compare("back");
  }
  const scrub = player.element.shadowRoot.querySelector(".scrub");
  for (const share of scrubs) {
    scrub.value = String(Math.round(share * (forward.length - 1)));
    scrub.dispatchEvent(new Event("input"));
    compare("scrubbed");
  }
  return `{"moments":[${forward}],"arrays":${JSON.stringify(reader.arrays, coded)},"unlike":${JSON.stringify(unlike)}}`;
}
