/**
 * The elements of the drawing: created once, then painted at each moment. Static text is written on creation; the rest
 * only when it changes.
 */
import { abs, finite, max, min, round, sign, sqrt } from "../base/math.js";
import { CAPTION, HEAD, PAD, RAISED, RIM, ROW, SMALL, STACK, ruleOf, shortTitle } from "./cards.js";
import { curvePath, tipPath } from "./curves.js";
import { dress, drawn, setText } from "../base/dom.js";
import { fitNumber, fitText, textWidth } from "../base/measure.js";
import { brief } from "../base/notation.js";
import { spokenNode } from "./looks.js";
import { crossPath, thumbnail } from "./heatcolour.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Playback} Playback */
/** @typedef {import("../base/types.js").Cells} Cells */
/** @typedef {import("./scene.js").SceneItem} SceneItem */
/** @typedef {import("./scene.js").SceneWire} SceneWire */
/** @typedef {import("./looks.js").Look} Look */

/**
 * The elements of an item: its group, its static classes, its formula for screen readers, and the parts that change.
 * @typedef {ReturnType<typeof makeItem>} DrawnItem
 */

/**
 * @param {string} look @param {number} x @param {number} y @param {number} width @param {number} height
 * @param {number} [rx]
 */
export const rect = (look, x, y, width, height, rx) => drawn("rect", { class: look, x, y, width, height, rx });

/** @param {string} look @param {string} [d] */
export const path = (look, d) => drawn("path", { class: look, d });

/** @param {string} look @param {number} x @param {number} y @param {(Node | string)[]} words */
export const text = (look, x, y, ...words) => drawn("text", { class: look, x, y }, ...words);

/**
 * Create a `tspan`, offset by `dx`.
 * @param {string} look @param {string} [words] @param {number} [dx]
 */
const span = (look, words = "", dx) => drawn("tspan", { class: look, dx }, words);

/** Return the corner radius of a card: leaves are round, operations angular. @param {SceneItem} item */
export const cornerOf = ({ card }) => ({ constant: 13, leaf: 12, block: 5, op: 4, broken: 4 })[card.kind];

/** Return the size of a card without the second border of an output or the stack of a block. @param {SceneItem} item */
export function sizeOf({ w, h, card }) {
  const less = card.kind === "block" ? STACK : 2 * card.rim;
  return [w - less, h - less];
}

/**
 * Return a strip from y0 to y1 with upper corners of radius r and lower corners of radius s.
 * @param {number} w @param {number} y0 @param {number} y1 @param {number} r @param {number} s
 */
const strip = (w, y0, y1, r, s) =>
  `M0 ${y0 + r}a${r} ${r} 0 0 1 ${r} ${-r}H${w - r}a${r} ${r} 0 0 1 ${r} ${r}` +
  `V${y1 - s}a${s} ${s} 0 0 1 ${-s} ${s}H${s}a${s} ${s} 0 0 1 ${-s} ${-s}z`;

/**
 * Create an item. When zoomed out (`unit` > 0 is the size of a pixel in units of the drawing), it shows only its name,
 * and its value and gradient as numbers or bars.
 * @param {Graph} graph @param {SceneItem} item @param {number} [unit]
 */
export function makeItem(graph, item, unit = 0) {
  const { node, card } = item;
  const [w] = sizeOf(item);
  const { kind, rim, output } = card;
  const pill = kind === "constant" && !card.picture;
  const base = ["item", kind, output && "output", card.still && "still", card.alarm && "bad"].filter(Boolean).join(" ");
  const transform = `translate(${item.x + rim} ${item.y + rim})`;
  const group = drawn("g", { class: base, transform, "data-id": item.id, tabindex: -1, role: "button" });
  const rule = node >= 0 ? ruleOf(graph, node, 60) : "";
  const parts = {
    group,
    base,
    rule: rule && ` = ${rule}`,
    value: text("num", w - PAD, HEAD + 14.5),
    grad: card.picture ? span("grad dim", "", 4) : text("num grad", w - PAD, HEAD + ROW + 14.5),
    sum: span("sum", "", 5),
    pictures: /** @type {SVGElement[]} */ ([]),
    ways: /** @type {SVGElement[]} */ ([]),
    size: unit ? SMALL * unit : 12.5,
    room: unit ? w - 4 * unit : w - 2 * PAD - CAPTION,
  };
  const body = unit ? farBody(item, parts, unit) : pill ? pillOf(item) : bodyOf(item, parts);
  group.append(tooltip(graph, item, parts.rule), ...body);
  if (rim) group.append(rect("ring", -RIM, -RIM, item.w, item.h, cornerOf(item) + RIM));
  if (card.alarm && !unit) {
    const [x, y] = pill ? [w, 0] : [w - 13, HEAD / 2];
    group.append(drawn("circle", { class: "badge", cx: x, cy: y, r: 7.5 }), text("", x, y + 4.5, "!"));
  }
  return parts;
}

/**
 * Create a tooltip with the full name and whatever the card has no room for.
 * @param {Graph} graph @param {SceneItem} item @param {string} rule
 */
function tooltip(graph, { node, block, card }, rule) {
  const lines =
    node >= 0
      ? [`${graph.names[node] ?? graph.title(node)}${rule}`, graph.lines.get(node)]
      : [graph.blocks[block].name, card.note, "Click to open"];
  return drawn("title", {}, lines.filter(Boolean).join("\n"));
}

/** Create the body of a constant. @param {SceneItem} item */
function pillOf(item) {
  const [w, high] = sizeOf(item);
  const number = text("num", w - PAD - 1, 17.5, item.card.name);
  return [rect("box line", 0, 0, w, high, cornerOf(item)), text("cap dim", PAD + 1, 17, "const"), number];
}

/**
 * Create the body of a node or a closed block: a box with a header.
 * @param {SceneItem} item @param {DrawnItem} parts
 */
function bodyOf(item, parts) {
  const { card } = item;
  const [w, high] = sizeOf(item);
  const r = cornerOf(item);
  const block = card.kind === "block";
  const box = (/** @type {string} */ look, off = 0) => rect(look, off, off, w, high, r);
  const [first, second] = [HEAD + 14.5, HEAD + ROW + 14.5];
  const rows = block
    ? progressOf(item, parts)
    : card.h === HEAD + ROW + 2 * card.rim
      ? [text("cap dim", PAD, HEAD + 14, card.note)]
      : card.kind === "broken"
      ? [text("raised", PAD, HEAD + 15.5, RAISED)]
      : card.picture
        ? picturesOf(item, parts, card.picture)
        : [text("cap fw", PAD, first, "data"), parts.value, text("cap bw", PAD, second, "grad", parts.sum), parts.grad];
  const washed = card.h > HEAD + 2 * ROW - 1 && !block && !card.picture && card.kind !== "broken";
  const title = [span(card.named ? "" : "unnamed", card.name), span("rule", card.rule), span("bw", card.badge, 8)];
  return [
    ...(block ? [box("stack", STACK), box("stack", STACK / 2)] : []),
    box("box"),
    ...(washed ? [path("wash", strip(w, HEAD + ROW, high, 0, r))] : []),
    path("head", strip(w, 0, HEAD, r, 0)),
    ...(block ? [path("sign", `M${PAD} ${HEAD / 2}h9m-4.5 -4.5v9`)] : []),
    text("name", block ? PAD + 15 : PAD, 17, ...title.filter((one) => one.textContent)),
    ...rows,
    box("line"),
  ];
}

/**
 * Truncate a name to its last parts, "0.weight" or "[0]", or to its end if trailing digits distinguish it.
 * @param {string} name @param {number} room @param {number} size
 */
function fitEnd(name, room, size) {
  const parts = /\s/.test(name) ? [name] : [name, ...[...name.matchAll(/\.(?=\w)|(?=\[)/g)].map(({ index, 0: dot }) => name.slice(index + dot.length))];
  const whole = parts.find((one) => textWidth(one, size, true) <= room);
  const turned = (/** @type {string} */ text) => [...text].reverse().join("");
  const cut = whole ?? (/\d$/.test(name) ? turned(fitText(turned(name), room, size, true)) : fitText(parts[parts.length - 1], room, size, true));
  return (cut.length < 3 && cut.includes("…")) || textWidth(cut, size, true) > room ? "" : cut; // a single letter is useless
}

/**
 * Truncate a title: without its type, "layers[0] · Layer(4→8)", or to its type if its name is a number.
 * @param {string} name @param {number} room @param {number} size
 */
function fitTitle(name, room, size) {
  return textWidth(name, size, true) > room ? fitEnd(shortTitle(name), room, size) : name;
}

/**
 * Return the header of a zoomed-out card: its name, and its operation if that fits.
 * @param {import("./cards.js").Card} card @param {number} room @param {number} size
 */
function farName({ name, named, badge, alarm, kind, op }, room, size) {
  const [before, after] = [alarm ? "! " : "", badge && ` ${badge}`];
  const wide = (/** @type {string} */ text) => textWidth(text, size, true);
  if (kind === "constant") return [wide(name) > room ? "" : name];
  const shown = fitTitle(name, room - wide(before + after), size);
  const left = room - wide(`${before}${shown}${after}${shown && " "}`);
  const how = fitText(op, left, size);
  return [
    before + shown + after,
    span("how", (shown || !named) && (how === op || how.length > 4) ? how : "", shown ? 0.3 * size : 0),
  ];
}

/**
 * Create a zoomed-out item, whose text has the same size on screen at every scale.
 * @param {SceneItem} item @param {DrawnItem} parts @param {number} unit
 */
function farBody(item, parts, unit) {
  const { card } = item;
  const { picture, kind } = card;
  const [w, high] = sizeOf(item);
  const r = cornerOf(item);
  const { size, room } = parts;
  const pill = kind === "constant" && !picture;
  const plain = pill || high < 30;
  const head = plain ? high : min(high, 13 * unit);
  const rest = high - head;
  const words = (/** @type {SVGElement} */ one, /** @type {number} */ y, x = w / 2) =>
    dress(one, { x, y: y + 0.36 * size, style: `font-size:${size}px;text-anchor:middle` });
  const box = (/** @type {string} */ look) => rect(look, 0, 0, w, high, r);
  const rows = [];
  if (picture) {
    const k = min((w / 2 - 3 * unit) / picture.w, (rest - 3 * unit) / picture.h);
    parts.pictures = [0.25, 0.75].map((x) => {
      const [left, top] = [x * w - (k * picture.w) / 2, head + (rest - k * picture.h) / 2];
      return drawn("g", { transform: `translate(${left} ${top}) scale(${k})` });
    });
    rows.push(...parts.pictures);
  } else if (!plain && kind !== "broken") {
    const line = rest / 2;
    if (kind !== "block" && line >= 10.5 * unit) {
      rows.push(words(parts.value, head + line / 2), words(parts.grad, head + 1.5 * line));
    } else {
      parts.ways = ["fw", "bw"].map((look, k) => {
        const thick = max(unit, min(line - unit, 5 * unit));
        return rect(look, 3 * unit, head + (k + 0.5) * line - thick / 2, 0, thick);
      });
      rows.push(...parts.ways);
    }
  }
  return [
    ...(kind === "block" ? [rect("stack", STACK, STACK, w, high, r)] : []),
    ...[box("box"), ...(pill ? [] : [path("head", strip(w, 0, head, min(r, head / 2), rest ? 0 : r))])],
    words(text("name", 0, 0, ...farName(card, room, size)), head / 2),
    ...rows,
    box("line"),
  ];
}

/**
 * Create the two heatmaps of a tensor.
 * @param {SceneItem} item @param {DrawnItem} parts @param {{w: number, h: number}} size
 */
function picturesOf(item, parts, { w, h }) {
  const [wide] = sizeOf(item);
  const half = wide / 2;
  const top = HEAD + 18;
  const right = half + 4;
  parts.pictures = [PAD, right].map((x) => drawn("g", { transform: `translate(${x} ${top})` }));
  return [
    path("wash", `M${half} ${HEAD}H${wide}V${top + h + 6}H${half}z`),
    text("cap fw", PAD, HEAD + 13, "data"),
    text("cap bw", right, HEAD + 13, "grad", parts.sum, parts.grad),
    ...[PAD, right].map((x) => rect("rim", x - 0.5, top - 0.5, w + 1, h + 1)),
    ...parts.pictures,
    text("cap dim", PAD, top + h + 16, item.card.note),
  ];
}

/** Create a block's summary and its progress bars. @param {SceneItem} item @param {DrawnItem} parts */
function progressOf(item, parts) {
  const bar = (/** @type {string} */ look, /** @type {number} */ y, wide = 0) => rect(look, PAD, y, wide, 4, 2);
  const ys = [HEAD + 22, HEAD + 28];
  parts.ways = ys.map((y, k) => bar(k ? "bw" : "fw", y));
  const ways = ys.map((y) => bar("way", y, sizeOf(item)[0] - 2 * PAD));
  return [text("cap dim", PAD, HEAD + 15, item.card.note), ...ways, ...parts.ways];
}

/** Set an attribute if it differs. @param {Element} element @param {string} name @param {string} words */
export function attribute(element, name, words) {
  if (element.getAttribute(name) !== words) element.setAttribute(name, words);
}

/**
 * Paint a node in its current state.
 * @param {Graph} graph @param {SceneItem} item @param {DrawnItem} parts @param {Look} look
 * @param {ReturnType<typeof pictureMaker>} picture @param {number[]} peaks the largest value and gradient, to scale bars
 */
export function paintNode(graph, item, parts, look, picture, peaks) {
  const { card } = item;
  const { value, grad } = look;
  const wild = typeof value === "number" && !finite(value);
  attribute(parts.group, "class", `${parts.base} ${look.state}${look.pale ? " pale" : ""}${wild ? " bad" : ""}${grad === 0 ? " nil" : typeof grad === "number" && grad < 0 ? " negative" : ""}`);
  parts.group.toggleAttribute("data-unable", look.unable);
  attribute(parts.group, "aria-label", spokenNode(graph, look, item.node, parts.rule));
  const { room, size, ways } = parts;
  const sum = look.sum && size === 12.5 ? textWidth(look.sum, 11, true) + 5 : 0;
  const shown = (/** @type {unknown} */ x, less = 0) =>
    typeof x === "number" ? fitNumber(x, room - less, size, brief) : "";
  setText(parts.value, shown(value));
  setText(parts.sum, look.sum);
  setText(parts.grad, look.pale ? "" : look.sign || shown(grad, sum));
  ways.forEach((bar, k) => paintBar(bar, k ? grad : value, peaks[k], room, sizeOf(item)[0] / 2));
  parts.pictures.forEach((place, k) => paintPicture(place, k ? grad : value, card, picture));
}

/**
 * Paint a number as a bar, to the right of the centre if positive; its length grows with the square root, as colours
 * do.
 * @param {SVGElement} bar @param {Look["value"]} x @param {number} peak @param {number} room @param {number} middle
 */
function paintBar(bar, x, peak, room, middle) {
  const share = typeof x === "number" && finite(x) ? (sign(x) * sqrt(min(abs(x) / peak, 1))) / 2 : 0;
  dress(bar, { x: middle + room * min(share, 0), width: room * abs(share) });
}

/**
 * @param {SVGElement} place @param {Look["value"]} cells @param {import("./cards.js").Card} card
 * @param {ReturnType<typeof pictureMaker>} picture
 */
function paintPicture(place, cells, card, picture) {
  if (cells === null || typeof cells === "number" || !card.picture) return place.replaceChildren();
  const { w, h: height } = card.picture;
  const { url, crosses, w: cols, h: rows } = picture(cells, w, height, card.scale ?? 1);
  if (place.firstElementChild?.getAttribute("href") === url) return;
  const [cw, ch] = [w / cols, height / rows];
  const d = crosses.slice(0, 400).map(([c, r]) => crossPath(c * cw, r * ch, cw, ch));
  place.replaceChildren(
    drawn("image", { class: "thumb", href: url, width: w, height, preserveAspectRatio: "none" }),
    ...(d.length ? [path("nan", d.join(""))] : []),
  );
}

/** Return a cached thumbnail renderer: one thumbnail for each array and scale. @param {Uint8Array} ramp */
export function pictureMaker(ramp) {
  /** @type {WeakMap<Cells, Map<number, ReturnType<typeof thumbnail>>>} */
  const made = new WeakMap();
  /** @param {Cells} cells @param {number} w @param {number} high @param {number} scale */
  return (cells, w, high, scale) => {
    const known = made.get(cells) ?? new Map();
    if (!known.has(scale)) known.set(scale, thumbnail(cells, scale, ramp, round(w), round(high)));
    made.set(cells, known);
    return /** @type {ReturnType<typeof thumbnail>} */ (known.get(scale));
  };
}

/**
 * @param {SceneItem} item @param {DrawnItem} parts @param {import("./looks.js").Done} done @param {string} name
 */
export function paintBlock(item, parts, done, name) {
  const { forward, backward, of, gradients } = done;
  const long = sizeOf(item)[0] - 2 * Number(parts.ways[0].getAttribute("x"));
  const shares = [of && forward / of, gradients && backward / gradients];
  parts.ways.forEach((bar, k) => attribute(bar, "width", String(long * shares[k])));
  attribute(parts.group, "class", `${parts.base}${forward || !of ? "" : " pale"}`);
  const { badge, note } = item.card;
  const said = `${name} ${badge}, closed block of ${note}, ${forward} of ${of} computed`;
  attribute(parts.group, "aria-label", `${said}, ${backward} gradients final`);
}

/** Create a wire: its line with its arrowhead, and its label if it has one. @param {SceneWire} wire */
export function makeWire({ label }) {
  const group = drawn("g", {}, path("line"), path("tip"));
  return { group, over: label && text("label", label.x + label.w, label.y + 8.9) };
}

/**
 * Point a wire forward, or back once a gradient has flowed over it.
 * @param {Element} group @param {SceneWire} wire @param {boolean} back
 */
export function pointWire(group, { points }, back) {
  const [line, tip] = group.children;
  attribute(line, "d", curvePath(points, back));
  attribute(tip, "d", back ? tipPath(points[0], -1, 1.2) : tipPath(points[points.length - 1]));
}

/**
 * Create the frame of an open block; clicking its title closes it.
 * @param {import("./scene.js").Hull} hull @param {number} [unit]
 */
export function makeFrame({ x, y, w, h: high, name }, unit = 0) {
  const size = max(11.5, min(SMALL * unit, 26)); // as far as the gap below the bar allows
  const title = dress(text("", 24, 11 + 0.36 * size, fitTitle(name, w - 30, size)), { style: `font-size:${size}px` });
  const moved = drawn("g", {}, path("sign", "M9 11h9"), title);
  const bar = path("bar", strip(w, 0, 22, 6, 0));
  const frame = drawn("g", { class: "frame" }, drawn("title", {}, `Close ${name}`), bar, moved);
  const group = drawn("g", { transform: `translate(${x} ${y})` }, rect("hull", 0, 0, w, high, 6), frame);
  return { group, moved, x, most: max(0, w - 34 - textWidth(name, size, true)) };
}
