/**
 * The page: a text, a field for each leaf, and the player of the graph. The graph is drawn anew for another text; while
 * a leaf is moved the player computes it again. What does not parse leaves the last graph where it is.
 */

import { fill, h, tag } from "../../viz/frontend/src/base/dom.js";

import { EXAMPLES } from "./examples.js";
import { numbersFor, reachOf, stepOf, written } from "./leaves.js";
import { linkOf, readLink } from "./link.js";
import { parse } from "./parser.js";
import { placeIn } from "./place.js";
import { tapeOf } from "./tape.js";
import { Mistake } from "./tokens.js";
import { tracerOf } from "./tracing.js";

/** @typedef {import("./catalogue.js").Catalogue} Catalogue */
/** @typedef {import("./tape.js").Tape} Tape */
/** @typedef {ReturnType<ReturnType<typeof tracerOf>["trace"]>} Trace */
/** @typedef {(host: HTMLElement, trace: unknown, options?: Record<string, unknown>) => import("../../viz/frontend/src/player.js").Player} Mount */

/**
 * What is drawn: the text it was drawn from, the trace that the player has, and how to get one for other numbers.
 * @typedef {{text: string, tape: Tape, tracer: ReturnType<typeof tracerOf>, trace: Trace}} Drawn
 */

/** Milliseconds after the last letter. */
const PAUSE = 700;
const TELLING = new Set(["nan", "inf", "gradient"]); // kinds of notes that are said beside the text

/** @param {Element} root @param {Catalogue} catalogue @param {Mount} mount */
export function playground(root, catalogue, mount) {
  return new Playground(root, catalogue, mount);
}

class Playground {
  /** @param {Element} root @param {Catalogue} catalogue @param {Mount} mount */
  constructor(root, catalogue, mount) {
    this.catalogue = catalogue;
    this.mount = mount;
    /** The last number of every name that was ever a leaf. @type {Map<string, number>} */
    this.numbers = new Map();
    /** @type {Map<string, number>} */
    this.reaches = new Map();
    /** @type {Drawn | null} */
    this.drawn = null;
    /** @type {ReturnType<Mount> | null} */
    this.player = null;
    this.timer = 0;
    this.parts = this.made();
    root.replaceChildren(...this.parts.all);
    addEventListener("hashchange", () => this.take(readLink(location.hash)));
    if (!this.take(readLink(location.hash))) this.choose(0);
  }

  // --- what there is on the page ---

  made() {
    const id = "minigrad-playground";
    const text = h("textarea", {
      id: `${id}-text`,
      rows: 2,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      "aria-describedby": `${id}-hint ${id}-said`,
      oninput: () => this.later(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.pressed(event),
    });
    const names = EXAMPLES.map(({ name }, k) => h("option", { value: String(k) }, name));
    const select = h("select", { id: `${id}-example` }, h("option", { value: "" }, "Choose one"), ...names);
    select.onchange = () => select.value && this.choose(Number(select.value));
    const link = h("button", { type: "button", onclick: () => this.share() }, "Copy a link to this");
    const shared = h("span.shared", { role: "status" });
    const hint = "Enter draws it, Shift and Enter begins a new line. Each name that is given no value gets a slider.";
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

  // --- where a text comes from ---

  /** @param {number} k */
  choose(k) {
    const { text, numbers } = EXAMPLES[k];
    this.take({ text, numbers: new Map(Object.entries(numbers)) });
    this.parts.select.value = String(k);
  }

  /** Takes a text with its numbers. @param {import("./link.js").Shared | null} shared */
  take(shared) {
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

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.draw(), PAUSE);
    this.parts.select.value = "";
    this.fit();
  }

  /** The field is as high as its text, up to a dozen lines. */
  fit() {
    const { text } = this.parts;
    text.rows = Math.max(2, Math.min(12, text.value.split("\n").length));
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.draw();
  }

  async share() {
    const { text } = this.drawn ?? { text: this.parts.text.value };
    const address = new URL(linkOf({ text, numbers: this.current() }), location.href);
    history.replaceState(null, "", address);
    const copied = await navigator.clipboard?.writeText(address.href).then(
      () => true,
      () => false,
    );
    this.parts.shared.textContent = copied ? "Copied." : "The address of this page is the link now.";
  }

  // --- drawing ---

  /**
   * Draws what is in the field, or says what is wrong with it. If the graph is the same, but for a space say, the
   * player stays where it is.
   * @param {boolean} [anew] the same text, too
   */
  draw(anew = false) {
    clearTimeout(this.timer);
    this.fit();
    this.parts.shared.textContent = "";
    const text = this.parts.text.value;
    const before = this.drawn;
    if (text === before?.text && !anew) return this.tell(null);
    try {
      const tape = tapeOf(parse(text, this.catalogue), this.catalogue);
      const numbers = numbersFor(tape, this.numbers, this.catalogue);
      for (const [name, x] of numbers) this.numbers.set(name, x);
      const tracer = tracerOf(tape, this.catalogue);
      const same = !anew && before?.tracer.shape === tracer.shape;
      this.drawn = { text, tape, tracer, trace: same ? before.trace : tracer.trace(numbers) };
      if (!same) this.play({});
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      return this.tell(error);
    }
    this.moved();
    this.tell(null);
  }

  /** Puts the trace into a player. @param {Record<string, unknown>} state */
  play(state) {
    const { speed, granularity } = this.player?.state() ?? {};
    this.player?.destroy();
    this.player = this.mount(this.parts.host, this.drawn?.trace, { speed, granularity, ...state });
    this.player.on("change", ({ values }) => this.follow(values));
  }

  /** Says what is wrong; or, in place of that, what is drawn. @param {Mistake | null} mistake */
  tell(mistake) {
    const { text, said } = this.parts;
    said.classList.toggle("wrong", mistake !== null);
    text.setAttribute("aria-invalid", String(mistake !== null));
    const kept = this.drawn && mistake ? " The graph below is the last one that could be drawn." : "";
    const sentence = mistake ? `${mistake.message}${kept}` : (this.drawn?.tracer.trace(this.current()).sentence ?? "");
    fill(said, mistake && text.value.trim() !== "" && pointer(text.value, mistake), tag("p", {}, sentence));
    this.hear();
  }

  /** Lets those hear who do not see, once a reader stops: while a slider moves it would never end. */
  hear() {
    const { said, remark, heard } = this.parts;
    const wrong = said.classList.contains("wrong");
    const found = [...said.querySelectorAll("p"), ...(wrong ? [] : remark.querySelectorAll("p"))];
    heard.textContent = found.map((one) => one.textContent).join(" ");
  }

  // --- numbers ---

  /** The numbers of the leaves that are drawn. */
  current() {
    const names = [...(this.drawn?.tape.leaves.keys() ?? [])];
    return new Map(names.map((name) => [name, this.numbers.get(name) ?? 0]));
  }

  /** Gives a leaf another number. @param {string} name @param {number} x */
  move(name, x) {
    if (!Number.isFinite(x) || Object.is(this.numbers.get(name), x)) return;
    this.numbers.set(name, x);
    this.player?.restore({ values: Object.fromEntries(this.current()) });
    this.moved();
  }

  /** The reader let go of a leaf: that is told, and soon the player learns what else there is to be said of the graph. */
  settle() {
    this.hear();
    setTimeout(() => this.remount());
  }

  /**
   * A player with other notes, if there are any. Not while the reader is in it: a press on one of its buttons is what
   * took the focus from a leaf, and a new player would swallow it.
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

  /** The player's own sliders move leaves too. @param {Record<string, number>} values those that are not as in its trace */
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
    if (other) this.moved();
  }

  moved() {
    this.showLeaves();
    if (!this.drawn) return;
    const trace = this.drawn.tracer.trace(this.current());
    this.showRemark(trace);
    if (!this.parts.said.classList.contains("wrong")) fill(this.parts.said, tag("p", {}, trace.sentence));
  }

  showLeaves() {
    const rows = [...this.current()].map(([name, x], k) => {
      const reach = reachOf(x, this.reaches.get(name));
      this.reaches.set(name, reach);
      const change = (/** @type {Event & {target: any}} */ event) => {
        if (event.target.value.trim() !== "") this.move(name, Number(event.target.value));
      };
      const done = {
        onchange: (/** @type {Event & {target: any}} */ event) => {
          event.target.value = written(this.numbers.get(name) ?? 0); // where there was no number
          this.settle();
        },
      };
      const id = `minigrad-playground-leaf-${k}`;
      const range = { type: "range", min: -reach, max: reach, step: stepOf(reach), label: `${name}, slider` };
      return tag(
        "div.leaf",
        {},
        tag("label", { for: id }, name),
        tag("input", { id, type: "number", step: "any", value: written(x), oninput: change, ...done }),
        tag("input", { ...range, value: x, oninput: change, ...done }),
      );
    });
    fill(this.parts.leaves, ...rows);
  }

  /** Where NaN and infinities come from, below the text that makes them. @param {Trace} trace */
  showRemark(trace) {
    const { text, tape } = /** @type {Drawn} */ (this.drawn);
    const notes = trace.notes.filter(({ kind }) => TELLING.has(kind));
    const said = notes.map((note) => {
      const { span } = tape.entries[note.kind === "gradient" ? this.throughOf(note) : note.node];
      return tag("div", {}, pointer(text, span), tag("p", {}, note.text));
    });
    fill(this.parts.remark, ...said);
  }

  /** The operation whose derivative is not finite. @param {import("./notes.js").TraceNote} note */
  throughOf({ node, edges = [] }) {
    return this.drawn?.trace.edges.result[edges[0]] ?? node;
  }
}

/**
 * A line of a text with carets below a place: for the eye, since the sentence beside it says the same.
 * @param {string} text @param {{from: number, to: number}} at
 */
function pointer(text, at) {
  const { line, caret } = placeIn(text, at);
  return tag("pre", { "aria-hidden": true }, `${line}\n${caret}`);
}
