/**
 * The page: an expression, a field for each leaf, and a player. A new expression redraws the graph; while a leaf moves,
 * the player recomputes it. If an expression cannot be parsed, the last graph stays.
 */

import { setChildren, h, tag } from "../../viz/frontend/src/base/dom.js";

import { EXAMPLES } from "./examples.js";
import { initialValues, sliderBound, sliderStep, formatFieldNumber } from "./leaves.js";
import { createLink, parseLink } from "./link.js";
import { parse } from "./parser.js";
import { caretAt } from "./caret.js";
import { buildTape } from "./tape.js";
import { Mistake } from "./tokens.js";
import { createTracer } from "./tracer.js";

/** @typedef {import("./catalogue.js").Catalogue} Catalogue */
/** @typedef {import("./tape.js").Tape} Tape */
/** @typedef {ReturnType<ReturnType<typeof createTracer>["trace"]>} Trace */
/** @typedef {(host: HTMLElement, trace: unknown, options?: Record<string, unknown>) => import("../../viz/frontend/src/player.js").Player} Mount */

/**
 * The drawn graph: its expression, the player's trace, and a tracer for other values.
 * @typedef {{text: string, tape: Tape, tracer: ReturnType<typeof createTracer>, trace: Trace}} DrawnGraph
 */

/** Delay after the last keystroke, in milliseconds. */
const PAUSE = 700;
const SHOWN_KINDS = new Set(["nan", "inf", "gradient"]); // kinds of notes shown below the expression

/** @param {Element} root @param {Catalogue} catalogue @param {Mount} mount */
export function playground(root, catalogue, mount) {
  return new Playground(root, catalogue, mount);
}

class Playground {
  /** @param {Element} root @param {Catalogue} catalogue @param {Mount} mount */
  constructor(root, catalogue, mount) {
    this.catalogue = catalogue;
    this.mount = mount;
    /** The last value of every name that was ever a leaf. @type {Map<string, number>} */
    this.numbers = new Map();
    /** @type {Map<string, number>} */
    this.reaches = new Map();
    /** @type {DrawnGraph | null} */
    this.drawn = null;
    /** @type {ReturnType<Mount> | null} */
    this.player = null;
    this.timer = 0;
    this.parts = this.createParts();
    root.replaceChildren(...this.parts.all);
    addEventListener("hashchange", () => this.load(parseLink(location.hash)));
    if (!this.load(parseLink(location.hash))) this.choose(0);
  }

  // --- elements ---

  createParts() {
    const id = "minigrad-playground";
    const text = h("textarea", {
      id: `${id}-text`,
      rows: 2,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      "aria-describedby": `${id}-hint ${id}-said`,
      oninput: () => this.drawLater(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKeyDown(event),
    });
    const names = EXAMPLES.map(({ name }, k) => h("option", { value: String(k) }, name));
    const select = h("select", { id: `${id}-example` }, h("option", { value: "" }, "Choose one"), ...names);
    select.onchange = () => select.value && this.choose(Number(select.value));
    const link = h("button", { type: "button", onclick: () => this.share() }, "Copy a link to this");
    const shared = h("span.shared", { role: "status" });
    const hint = "Press Enter to draw, Shift+Enter for a new line. Each name without a value gets a slider.";
    const said = h("div.said", { id: `${id}-said` });
    const heard = h("p.heard", { role: "status" });
    const remark = h("div.remark");
    const leaves = h("div.leaves", { role: "group", label: "Numbers" });
    const host = h("div.minigrad-player");
    const example = h("div.pair", {}, h("label", { for: `${id}-example` }, "Example"), select);
    const sharing = h("div.pair", {}, shared, link);
    const label = h("label", { for: `${id}-text` }, "Expression");
    const bar = h("div.bar", {}, example, sharing);
    const all = [bar, label, text, h("p.hint", { id: `${id}-hint` }, hint), said, heard, leaves, remark, host];
    return { all, text, select, shared, said, heard, remark, leaves, host };
  }

  // --- expressions ---

  /** @param {number} k */
  choose(k) {
    const { text, numbers } = EXAMPLES[k];
    this.load({ text, numbers: new Map(Object.entries(numbers)) });
    this.parts.select.value = String(k);
  }

  /** Load an expression with its values. @param {import("./link.js").Shared | null} shared */
  load(shared) {
    if (!shared) return false;
    for (const [name, x] of shared.numbers) {
      this.numbers.set(name, x);
      this.reaches.delete(name);
    }
    this.parts.text.value = shared.text;
    this.parts.select.value = "";
    this.draw(true);
    return true;
  }

  drawLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.draw(), PAUSE);
    this.parts.select.value = "";
    this.fit();
  }

  /** Grow the field with its text, up to 12 lines. */
  fit() {
    const { text } = this.parts;
    text.rows = Math.max(2, Math.min(12, text.value.split("\n").length));
  }

  /** @param {KeyboardEvent} event */
  onKeyDown(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.draw();
  }

  async share() {
    const { text } = this.drawn ?? { text: this.parts.text.value };
    const address = new URL(createLink({ text, numbers: this.current() }), location.href);
    history.replaceState(null, "", address);
    const copied = await navigator.clipboard?.writeText(address.href).then(
      () => true,
      () => false,
    );
    this.parts.shared.textContent = copied ? "Copied." : "The link is now in the address bar.";
  }

  // --- drawing ---

  /**
   * Draw the expression, or show what is wrong with it. If the graph is the same, for example up to a space, the player
   * stays.
   * @param {boolean} [force] redraw even if the expression is unchanged
   */
  draw(force = false) {
    clearTimeout(this.timer);
    this.fit();
    this.parts.shared.textContent = "";
    const text = this.parts.text.value;
    const before = this.drawn;
    if (text === before?.text && !force) return this.showMessage(null);
    try {
      const tape = buildTape(parse(text, this.catalogue), this.catalogue);
      const numbers = initialValues(tape, this.numbers, this.catalogue);
      for (const [name, x] of numbers) this.numbers.set(name, x);
      const tracer = createTracer(tape, this.catalogue);
      const same = !force && before?.tracer.shape === tracer.shape;
      this.drawn = { text, tape, tracer, trace: same ? before.trace : tracer.trace(numbers) };
      if (!same) this.play({});
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      return this.showMessage(error);
    }
    this.update();
    this.showMessage(null);
  }

  /** Mount a player for the trace. @param {Record<string, unknown>} state */
  play(state) {
    const { speed, granularity } = this.player?.state() ?? {};
    this.player?.destroy();
    this.player = this.mount(this.parts.host, this.drawn?.trace, { speed, granularity, ...state });
    this.player.on("change", ({ values }) => this.follow(values));
  }

  /** Show a mistake, or else a description of the graph. @param {Mistake | null} mistake */
  showMessage(mistake) {
    const { text, said } = this.parts;
    said.classList.toggle("wrong", mistake !== null);
    text.setAttribute("aria-invalid", String(mistake !== null));
    const suffix = this.drawn && mistake ? " The graph below shows the last valid expression." : "";
    const sentence = mistake ? `${mistake.message}${suffix}` : (this.drawn?.tracer.trace(this.current()).sentence ?? "");
    setChildren(said, mistake && text.value.trim() !== "" && caretBlock(text.value, mistake), tag("p", {}, sentence));
    this.announce();
  }

  /** Announce the message to screen readers, once the user pauses: announcing each slider move would never end. */
  announce() {
    const { said, remark, heard } = this.parts;
    const wrong = said.classList.contains("wrong");
    const paragraphs = [...said.querySelectorAll("p"), ...(wrong ? [] : remark.querySelectorAll("p"))];
    heard.textContent = paragraphs.map((one) => one.textContent).join(" ");
  }

  // --- values ---

  /** Return the values of the drawn leaves. */
  current() {
    const names = [...(this.drawn?.tape.leaves.keys() ?? [])];
    return new Map(names.map((name) => [name, this.numbers.get(name) ?? 0]));
  }

  /** Set the value of a leaf. @param {string} name @param {number} x */
  setLeaf(name, x) {
    if (!Number.isFinite(x) || Object.is(this.numbers.get(name), x)) return;
    this.numbers.set(name, x);
    this.player?.restore({ values: Object.fromEntries(this.current()) });
    this.update();
  }

  /** Announce the result once the user releases a leaf, and update the player's notes soon after. */
  settle() {
    this.announce();
    setTimeout(() => this.remount());
  }

  /**
   * Replace the player if its notes have changed, but not while the user is in it: pressing one of its buttons takes
   * the focus from a leaf, and a new player would swallow the click.
   */
  remount() {
    const { drawn, player } = this;
    const { host } = this.parts;
    if (!drawn || !player || host === document.activeElement || host.matches(":active")) return;
    const now = drawn.tracer.trace(this.current());
    if (JSON.stringify(now.notes) === JSON.stringify(drawn.trace.notes)) return;
    drawn.trace = now;
    const { position, selected, expanded } = player.state();
    this.play({ position, selected, expanded });
  }

  /**
   * Update the leaves after the player's own sliders moved them.
   * @param {Record<string, number>} values those that differ from its trace
   */
  follow(values) {
    const { drawn } = this;
    if (!drawn) return;
    let other = false;
    drawn.tape.entries.forEach(({ kind, name }, at) => {
      if (kind !== "l" || name === null) return;
      const x = Object.hasOwn(values, name) ? values[name] : Number(drawn.trace.nodes.value[at]);
      other ||= x !== this.numbers.get(name);
      this.numbers.set(name, x);
    });
    if (other) this.update();
  }

  update() {
    this.showLeaves();
    if (!this.drawn) return;
    const trace = this.drawn.tracer.trace(this.current());
    this.showRemark(trace);
    if (!this.parts.said.classList.contains("wrong")) setChildren(this.parts.said, tag("p", {}, trace.sentence));
  }

  showLeaves() {
    const rows = [...this.current()].map(([name, x], k) => {
      const reach = sliderBound(x, this.reaches.get(name));
      this.reaches.set(name, reach);
      const change = (/** @type {Event & {target: any}} */ event) => {
        if (event.target.value.trim() !== "") this.setLeaf(name, Number(event.target.value));
      };
      const done = {
        onchange: (/** @type {Event & {target: any}} */ event) => {
          event.target.value = formatFieldNumber(this.numbers.get(name) ?? 0); // restores a value if the field is empty
          this.settle();
        },
      };
      const id = `minigrad-playground-leaf-${k}`;
      const range = { type: "range", min: -reach, max: reach, step: sliderStep(reach), label: `${name}, slider` };
      return tag(
        "div.leaf",
        {},
        tag("label", { for: id }, name),
        tag("input", { id, type: "number", step: "any", value: formatFieldNumber(x), oninput: change, ...done }),
        tag("input", { ...range, value: x, oninput: change, ...done }),
      );
    });
    setChildren(this.parts.leaves, ...rows);
  }

  /** Show the origin of NaN and infinities below the expression. @param {Trace} trace */
  showRemark(trace) {
    const { text, tape } = /** @type {DrawnGraph} */ (this.drawn);
    const notes = trace.notes.filter(({ kind }) => SHOWN_KINDS.has(kind));
    const said = notes.map((note) => {
      const { span } = tape.entries[note.kind === "gradient" ? this.operationOf(note) : note.node];
      return tag("div", {}, caretBlock(text, span), tag("p", {}, note.text));
    });
    setChildren(this.parts.remark, ...said);
  }

  /** Return the operation whose derivative is not finite. @param {import("./notes.js").TraceNote} note */
  operationOf({ node, edges = [] }) {
    return this.drawn?.trace.edges.result[edges[0]] ?? node;
  }
}

/**
 * Show a line of the expression with carets below a span; hidden from screen readers, since the sentence next to it
 * says the same.
 * @param {string} text @param {{from: number, to: number}} at
 */
function caretBlock(text, at) {
  const { line, caret } = caretAt(text, at);
  return tag("pre", { "aria-hidden": true }, `${line}\n${caret}`);
}
