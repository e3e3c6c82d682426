/**
 * The elements of the SVG drawing, made once, and how each is painted at a moment. What a card says that never changes
 * is written when it is made; the rest only when it differs from what stands there.
 */
import { CAPTION, HEAD, PAD, RAISED, RIM, ROW, STACK, ruleOf } from "./cards.js";
import { curvePath, tipPath } from "./curves.js";
import { drawn } from "../panels/dom.js";
import { fitNumber, textWidth } from "./measure.js";
import { pretty } from "../engine/notation.js";
import { spokenNode } from "./looks.js";
import { thumbnail } from "./heatcolour.js";

/** @typedef {import("../types.js").Graph} Graph */
/** @typedef {import("../types.js").Cells} Cells */
/** @typedef {import("./scene.js").SceneItem} SceneItem */
/** @typedef {import("./scene.js").SceneWire} SceneWire */
/** @typedef {import("./looks.js").Look} Look */

/**
 * The parts of an item that change.
 * @typedef {object} Drawn
 * @property {SVGElement} group
 * @property {string} base its classes that never change
 * @property {string} rule for a screen reader
 * @property {SVGElement | null} value
 * @property {SVGElement | null} grad
 * @property {SVGElement | null} sum
 * @property {SVGElement | null} valuePicture
 * @property {SVGElement | null} gradPicture
 * @property {SVGElement[]} ways the bars of progress of a block
 */

/** @param {string} name @param {number} x @param {number} y @param {string} [words] */
function text(name, x, y, words = "") {
  const made = drawn("text", { class: name, x, y });
  made.textContent = words;
  return made;
}

/** The radius of a card's corners: round leaves, angular operations. @param {SceneItem} item */
export const cornerOf = ({ card }) => (card.kind === "constant" ? 13 : card.kind === "leaf" ? 12 : 4);

/**
 * The upper strip, or (from below) the lower one, of a card with round corners.
 * @param {number} w @param {number} y0 @param {number} y1 @param {number} r @param {boolean} top
 */
export function stripPath(w, y0, y1, r, top) {
  return top
    ? `M0 ${y1}V${y0 + r}a${r} ${r} 0 0 1 ${r} -${r}H${w - r}a${r} ${r} 0 0 1 ${r} ${r}V${y1}z`
    : `M0 ${y0}H${w}V${y1 - r}a${r} ${r} 0 0 1 -${r} ${r}H${r}a${r} ${r} 0 0 1 -${r} -${r}z`;
}

/** Makes an item. @param {Graph} graph @param {SceneItem} item @returns {Drawn} */
export function makeItem(graph, item) {
  const { card } = item;
  const base = ["item", card.kind, card.output && "output", card.still && "still", card.alarm && "bad"]
    .filter(Boolean)
    .join(" ");
  const at = `translate(${item.x + card.rim} ${item.y + card.rim})`;
  const group = /** @type {SVGElement} */ (
    drawn("g", { class: base, transform: at, "data-id": item.id, tabindex: -1, role: "button" })
  );
  const rule = item.node >= 0 ? ruleOf(graph, item.node, 60) : "";
  /** @type {Drawn} */
  const parts = {
    group,
    base,
    rule: rule && ` = ${rule}`,
    value: null,
    grad: null,
    sum: null,
    valuePicture: null,
    gradPicture: null,
    ways: [],
  };
  group.append(tooltip(graph, item, parts.rule));
  if (card.kind === "block") makeBlock(item, parts);
  else if (card.kind === "constant" && !card.picture) makeConstant(item, parts);
  else makeCard(item, parts);
  const w = item.w - 2 * card.rim;
  if (card.output && card.kind !== "block") {
    group.append(
      drawn("rect", { class: "ring", x: -RIM, y: -RIM, width: item.w, height: item.h, rx: cornerOf(item) + RIM }),
    );
  }
  if (card.alarm) {
    const right = card.kind === "block" ? w - STACK : w;
    const mark = card.kind === "constant" ? 0 : HEAD / 2;
    const x = card.kind === "constant" ? right : right - 13;
    group.append(drawn("circle", { class: "badge", cx: x, cy: mark, r: 7.5 }), text("", x, mark + 4.5, "!"));
  }
  return parts;
}

/**
 * The whole name, however long, and what the card has no room for.
 * @param {Graph} graph @param {SceneItem} item @param {string} rule
 */
function tooltip(graph, { node, block, card }, rule) {
  const title = drawn("title");
  const lines =
    node >= 0
      ? [`${graph.names[node] ?? graph.title(node)}${rule}`, graph.lines.get(node)]
      : [graph.blocks[block].name, card.note, "Click to open"];
  title.textContent = lines.filter(Boolean).join("\n");
  return title;
}

/** @param {SceneItem} item @param {Drawn} parts */
function makeConstant({ w, card }, parts) {
  const inner = w - 2 * card.rim;
  const number = text("num", inner - PAD - 1, 17.5, card.name);
  parts.group.append(
    drawn("rect", { class: "box line", width: inner, height: 26, rx: 13 }),
    text("cap dim", PAD + 1, 17, "const"),
    number,
  );
}

/** @param {SVGElement} group @param {import("./cards.js").Card} card */
function makeHeader(group, card) {
  const name = text("name", PAD, 17);
  const title = drawn("tspan", card.named ? {} : { class: "unnamed" });
  title.textContent = card.name;
  const rule = drawn("tspan", { class: "rule" });
  rule.textContent = card.rule;
  name.append(title, rule);
  group.append(name);
}

/** @param {SceneItem} item @param {Drawn} parts */
function makeCard(item, parts) {
  const { card } = item;
  const [w, hgt] = [item.w - 2 * card.rim, item.h - 2 * card.rim];
  const r = cornerOf(item);
  const { group } = parts;
  const washed = card.picture ? HEAD : HEAD + ROW;
  group.append(drawn("rect", { class: "box", width: w, height: hgt, rx: r }));
  if (!card.picture && card.kind !== "broken")
    group.append(drawn("path", { class: "wash", d: stripPath(w, washed, hgt, r, false) }));
  group.append(drawn("path", { class: "head", d: stripPath(w, 0, HEAD, r, true) }));
  makeHeader(group, card);
  if (card.kind === "broken") group.append(text("raised", PAD, HEAD + 15.5, RAISED));
  else if (card.picture) makePictures(item, parts, w, card.picture);
  else {
    const [first, second] = [HEAD + 14.5, HEAD + ROW + 14.5];
    parts.value = text("num", w - PAD, first);
    parts.grad = text("num grad", w - PAD, second);
    const caption = text("cap bw", PAD, second, "grad");
    parts.sum = /** @type {SVGElement} */ (drawn("tspan", { class: "sum", dx: 5 }));
    caption.append(parts.sum);
    group.append(text("cap fw", PAD, first, "data"), parts.value, caption, parts.grad);
  }
  group.append(drawn("rect", { class: "line", width: w, height: hgt, rx: r }));
}

/** @param {SceneItem} item @param {Drawn} parts @param {number} w @param {{w: number, h: number}} picture */
function makePictures({ card }, parts, w, picture) {
  const { group } = parts;
  const half = w / 2;
  const top = HEAD + 18;
  const box = (/** @type {number} */ x) =>
    drawn("rect", { class: "rim", x: x - 0.5, y: top - 0.5, width: picture.w + 1, height: picture.h + 1 });
  const right = half + 4;
  parts.valuePicture = /** @type {SVGElement} */ (drawn("g", { transform: `translate(${PAD} ${top})` }));
  parts.gradPicture = /** @type {SVGElement} */ (drawn("g", { transform: `translate(${right} ${top})` }));
  const caption = text("cap bw", right, HEAD + 13, "grad");
  parts.sum = /** @type {SVGElement} */ (drawn("tspan", { class: "sum", dx: 5 }));
  parts.grad = /** @type {SVGElement} */ (drawn("tspan", { class: "grad dim", dx: 4 }));
  caption.append(parts.sum, parts.grad);
  group.append(
    drawn("path", { class: "wash", d: `M${half} ${HEAD}H${w}V${top + picture.h + 6}H${half}z` }),
    text("cap fw", PAD, HEAD + 13, "data"),
    caption,
    box(PAD),
    box(right),
    parts.valuePicture,
    parts.gradPicture,
    text("cap dim", PAD, top + picture.h + 16, card.note),
  );
}

/** @param {SceneItem} item @param {Drawn} parts */
function makeBlock(item, parts) {
  const { card } = item;
  const [w, hgt] = [item.w - STACK, item.h - STACK];
  const { group } = parts;
  for (const off of [STACK, STACK / 2])
    group.append(drawn("rect", { class: "stack", x: off, y: off, width: w, height: hgt, rx: 5 }));
  group.append(
    drawn("rect", { class: "box", width: w, height: hgt, rx: 5 }),
    drawn("path", { class: "head", d: stripPath(w, 0, HEAD, 5, true) }),
    drawn("path", { class: "sign", d: `M${PAD} ${HEAD / 2}h9m-4.5 -4.5v9` }),
  );
  const name = text("name", PAD + 15, 17, card.name);
  if (card.badge) {
    const badge = drawn("tspan", { class: "bw", dx: 8 });
    badge.textContent = card.badge;
    name.append(badge);
  }
  group.append(name, text("cap dim", PAD, HEAD + 15, card.note));
  const long = w - 2 * PAD;
  for (const [k, y] of [HEAD + 22, HEAD + 28].entries()) {
    group.append(drawn("rect", { class: "way", x: PAD, y, width: long, height: 4, rx: 2 }));
    const bar = /** @type {SVGElement} */ (
      drawn("rect", { class: k ? "done-bw" : "done-fw", x: PAD, y, width: 0, height: 4, rx: 2 })
    );
    parts.ways.push(bar);
    group.append(bar);
  }
  group.append(drawn("rect", { class: "line", width: w, height: hgt, rx: 5 }));
}

/** Sets an attribute where it differs. @param {Element} element @param {string} name @param {string} words */
export function attribute(element, name, words) {
  if (element.getAttribute(name) !== words) element.setAttribute(name, words);
}

/** Sets text where it differs. @param {Element | null} element @param {string} words */
function write(element, words) {
  if (element && element.textContent !== words) element.textContent = words;
}

/**
 * Paints a node as it looks now.
 * @param {Graph} graph @param {SceneItem} item @param {Drawn} parts @param {Look} look
 * @param {ReturnType<typeof pictureMaker>} picture
 */
export function paintNode(graph, item, parts, look, picture) {
  const { card } = item;
  const wild = typeof look.value === "number" && !Number.isFinite(look.value);
  const name = `${parts.base} ${look.state}${look.pale ? " pale" : ""}${wild ? " bad" : ""}`;
  attribute(parts.group, "class", name);
  attribute(parts.group, "aria-label", spokenNode(graph, look, item.node, parts.rule));
  if (card.kind === "broken") return;
  const room = item.w - 2 * card.rim - 2 * PAD - CAPTION;
  if (typeof look.value === "number") write(parts.value, fitNumber(look.value, room, 12.5, pretty));
  else if (!card.picture) write(parts.value, "");
  write(parts.sum, look.sum);
  const sum = look.sum ? textWidth(look.sum, 10.5, true) + 5 : 0;
  const grad = typeof look.grad === "number" ? fitNumber(look.grad, room - sum, 12.5, pretty) : look.sign;
  write(parts.grad, look.pale ? "" : grad);
  if (!card.picture) return;
  paintPicture(parts.valuePicture, typeof look.value === "number" ? null : look.value, card, picture);
  paintPicture(parts.gradPicture, typeof look.grad === "number" ? null : look.grad, card, picture);
}

/**
 * @param {SVGElement | null} place @param {Cells | null} cells @param {import("./cards.js").Card} card
 * @param {Parameters<typeof paintNode>[4]} picture
 */
function paintPicture(place, cells, card, picture) {
  if (!place || !card.picture) return;
  if (!cells) return place.replaceChildren();
  const { w, h: hgt } = card.picture;
  const { url, crosses, w: cols, h: rows } = picture(cells, w, hgt, card.scale ?? 1);
  if (place.firstElementChild?.getAttribute("href") === url) return;
  place.replaceChildren(
    drawn("image", { class: "thumb", href: url, width: w, height: hgt, preserveAspectRatio: "none" }),
  );
  if (!crosses.length) return;
  const [cw, ch] = [w / cols, hgt / rows];
  const d = crosses.slice(0, 400).map(([c, r]) => `M${c * cw} ${r * ch}l${cw} ${ch}m0 ${-ch}l${-cw} ${ch}`);
  place.append(drawn("path", { class: "nan", d: d.join("") }));
}

/** Pictures of arrays, each made once for a theme and a scale. @param {() => Uint8Array} ramp */
export function pictureMaker(ramp) {
  /** @type {WeakMap<Cells, Map<number, ReturnType<typeof thumbnail>>>} */
  const made = new WeakMap();
  /** @param {Cells} cells @param {number} w @param {number} hgt @param {number} scale */
  return (cells, w, hgt, scale) => {
    const known = made.get(cells) ?? new Map();
    if (!known.has(scale)) known.set(scale, thumbnail(cells, scale, ramp(), Math.round(w), Math.round(hgt)));
    made.set(cells, known);
    return /** @type {ReturnType<typeof thumbnail>} */ (known.get(scale));
  };
}

/**
 * @param {SceneItem} item @param {Drawn} parts
 * @param {{forward: number, backward: number, of: number, gradients: number}} done @param {string} name
 */
export function paintBlock(item, parts, done, name) {
  const long = item.w - STACK - 2 * PAD;
  parts.ways[0].setAttribute("width", String(done.of ? (long * done.forward) / done.of : 0));
  parts.ways[1].setAttribute("width", String(done.gradients ? (long * done.backward) / done.gradients : 0));
  parts.group.setAttribute("class", `${parts.base}${done.forward || !done.of ? "" : " pale"}`);
  const { badge, note } = item.card;
  const said = `${name} ${badge}, closed block of ${note}, ${done.forward} of ${done.of} computed`;
  parts.group.setAttribute("aria-label", `${said}, ${done.backward} gradients final`);
}

/** A wire: its line, its tip, and its label if there is one. @param {SceneWire} wire */
export function makeWire(wire) {
  const line = drawn("path", { class: "wire", d: curvePath(wire.points) });
  const tip = drawn("path", { class: "tip", d: tipPath(wire.points[wire.points.length - 1]) });
  const label = wire.label ? text("label", wire.labelAt[0], wire.labelAt[1] + 3.9) : null;
  return { line, tip, label };
}
