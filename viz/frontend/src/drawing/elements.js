/**
 * The elements of the drawing: created once, then painted at each moment. Static text is written on creation; the rest
 * only when it changes.
 */
import { abs, isFinite, max, min, round, sign, sqrt } from "../base/math.js";
import { LABEL_WIDTH, HEADER_HEIGHT, PAD, RAISED_TEXT, RIM_WIDTH, ROW_HEIGHT, SMALL_FONT, STACK_OFFSET, formulaLine, shortTitle } from "./cards.js";
import { curvePath, arrowheadPath } from "./curves.js";
import { setAttributes, createSvg, setText } from "../base/dom.js";
import { fitNumber, fitText, textWidth } from "../base/measure.js";
import { formatBrief } from "../base/notation.js";
import { nodeLabel } from "./appearance.js";
import { crossPath, thumbnail } from "./heatcolour.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Playback} Playback */
/** @typedef {import("../base/types.js").Cells} Cells */
/** @typedef {import("./scene.js").SceneItem} SceneItem */
/** @typedef {import("./scene.js").SceneWire} SceneWire */
/** @typedef {import("./appearance.js").Look} Look */

/**
 * The elements of an item: its group, its static classes, its formula for screen readers, and the parts that change.
 * @typedef {ReturnType<typeof createItem>} DrawnItem
 */

/**
 * @param {string} className @param {number} x @param {number} y @param {number} width @param {number} height
 * @param {number} [rx]
 */
export const rect = (className, x, y, width, height, rx) => createSvg("rect", { class: className, x, y, width, height, rx });

/** @param {string} className @param {string} [d] */
export const path = (className, d) => createSvg("path", { class: className, d });

/** @param {string} className @param {number} x @param {number} y @param {(Node | string)[]} words */
export const text = (className, x, y, ...words) => createSvg("text", { class: className, x, y }, ...words);

/**
 * Create a `tspan`, offset by `dx`.
 * @param {string} className @param {string} [words] @param {number} [dx]
 */
const tspan = (className, words = "", dx) => createSvg("tspan", { class: className, dx }, words);

/** Return the corner radius of a card: leaves are round, operations angular. @param {SceneItem} item */
export const cornerRadius = ({ card }) => ({ constant: 13, leaf: 12, block: 5, op: 4, broken: 4 })[card.kind];

/** Return the size of a card without the second border of an output or the stack of a block. @param {SceneItem} item */
export function cardSize({ w, h, card }) {
  const border = card.kind === "block" ? STACK_OFFSET : 2 * card.rim;
  return [w - border, h - border];
}

/**
 * Return a strip from y0 to y1 with upper corners of radius r and lower corners of radius s.
 * @param {number} w @param {number} y0 @param {number} y1 @param {number} r @param {number} s
 */
const roundedStrip = (w, y0, y1, r, s) =>
  `M0 ${y0 + r}a${r} ${r} 0 0 1 ${r} ${-r}H${w - r}a${r} ${r} 0 0 1 ${r} ${r}` +
  `V${y1 - s}a${s} ${s} 0 0 1 ${-s} ${s}H${s}a${s} ${s} 0 0 1 ${-s} ${-s}z`;

/**
 * Create an item. When zoomed out (`unit` > 0 is the size of a pixel in units of the drawing), it shows only its name,
 * and its value and gradient as numbers or bars.
 * @param {Graph} graph @param {SceneItem} item @param {number} [unit]
 */
export function createItem(graph, item, unit = 0) {
  const { node, card } = item;
  const [w] = cardSize(item);
  const { kind, rim, output } = card;
  const pill = kind === "constant" && !card.picture;
  const base = ["item", kind, output && "output", card.isBlocked && "still", card.alarm && "bad"].filter(Boolean).join(" ");
  const transform = `translate(${item.x + rim} ${item.y + rim})`;
  const group = createSvg("g", { class: base, transform, "data-id": item.id, tabindex: -1, role: "button" });
  const rule = node >= 0 ? formulaLine(graph, node, 60) : "";
  const parts = {
    group,
    base,
    rule: rule && ` = ${rule}`,
    value: text("num", w - PAD, HEADER_HEIGHT + 14.5),
    grad: card.picture ? tspan("grad dim", "", 4) : text("num grad", w - PAD, HEADER_HEIGHT + ROW_HEIGHT + 14.5),
    sum: tspan("sum", "", 5),
    pictures: /** @type {SVGElement[]} */ ([]),
    bars: /** @type {SVGElement[]} */ ([]),
    size: unit ? SMALL_FONT * unit : 12.5,
    room: unit ? w - 4 * unit : w - 2 * PAD - LABEL_WIDTH,
  };
  const body = unit ? overviewBody(item, parts, unit) : pill ? constantBody(item) : cardBody(item, parts);
  group.append(tooltip(graph, item, parts.rule), ...body);
  if (rim) group.append(rect("ring", -RIM_WIDTH, -RIM_WIDTH, item.w, item.h, cornerRadius(item) + RIM_WIDTH));
  if (card.alarm && !unit) {
    const [x, y] = pill ? [w, 0] : [w - 13, HEADER_HEIGHT / 2];
    group.append(createSvg("circle", { class: "badge", cx: x, cy: y, r: 7.5 }), text("", x, y + 4.5, "!"));
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
  return createSvg("title", {}, lines.filter(Boolean).join("\n"));
}

/** Create the body of a constant. @param {SceneItem} item */
function constantBody(item) {
  const [w, height] = cardSize(item);
  const number = text("num", w - PAD - 1, 17.5, item.card.name);
  return [rect("box line", 0, 0, w, height, cornerRadius(item)), text("cap dim", PAD + 1, 17, "const"), number];
}

/**
 * Create the body of a node or a closed block: a box with a header.
 * @param {SceneItem} item @param {DrawnItem} parts
 */
function cardBody(item, parts) {
  const { card } = item;
  const [w, height] = cardSize(item);
  const r = cornerRadius(item);
  const block = card.kind === "block";
  const box = (/** @type {string} */ className, off = 0) => rect(className, off, off, w, height, r);
  const [first, second] = [HEADER_HEIGHT + 14.5, HEADER_HEIGHT + ROW_HEIGHT + 14.5];
  const rows = block
    ? progressElements(item, parts)
    : card.h === HEADER_HEIGHT + ROW_HEIGHT + 2 * card.rim
      ? [text("cap dim", PAD, HEADER_HEIGHT + 14, card.note)]
      : card.kind === "broken"
      ? [text("raised", PAD, HEADER_HEIGHT + 15.5, RAISED_TEXT)]
      : card.picture
        ? heatmapElements(item, parts, card.picture)
        : [text("cap fw", PAD, first, "data"), parts.value, text("cap bw", PAD, second, "grad", parts.sum), parts.grad];
  const hasGradientRow = card.h > HEADER_HEIGHT + 2 * ROW_HEIGHT - 1 && !block && !card.picture && card.kind !== "broken";
  const title = [tspan(card.named ? "" : "unnamed", card.name), tspan("rule", card.formula), tspan("bw", card.badge, 8)];
  return [
    ...(block ? [box("stack", STACK_OFFSET), box("stack", STACK_OFFSET / 2)] : []),
    box("box"),
    ...(hasGradientRow ? [path("wash", roundedStrip(w, HEADER_HEIGHT + ROW_HEIGHT, height, 0, r))] : []),
    path("head", roundedStrip(w, 0, HEADER_HEIGHT, r, 0)),
    ...(block ? [path("sign", `M${PAD} ${HEADER_HEIGHT / 2}h9m-4.5 -4.5v9`)] : []),
    text("name", block ? PAD + 15 : PAD, 17, ...title.filter((one) => one.textContent)),
    ...rows,
    box("line"),
  ];
}

/**
 * Truncate a name to its last parts, "0.weight" or "[0]", or to its end if trailing digits distinguish it.
 * @param {string} name @param {number} maxWidth @param {number} size
 */
function fitNameEnd(name, maxWidth, size) {
  const parts = /\s/.test(name) ? [name] : [name, ...[...name.matchAll(/\.(?=\w)|(?=\[)/g)].map(({ index, 0: dot }) => name.slice(index + dot.length))];
  const fitting = parts.find((one) => textWidth(one, size, true) <= maxWidth);
  const reversed = (/** @type {string} */ text) => [...text].reverse().join("");
  const truncated = fitting ?? (/\d$/.test(name) ? reversed(fitText(reversed(name), maxWidth, size, true)) : fitText(parts[parts.length - 1], maxWidth, size, true));
  return (truncated.length < 3 && truncated.includes("…")) || textWidth(truncated, size, true) > maxWidth ? "" : truncated; // a single letter is useless
}

/**
 * Truncate a title: without its type, "layers[0] · Layer(4→8)", or to its type if its name is a number.
 * @param {string} name @param {number} maxWidth @param {number} size
 */
function fitTitle(name, maxWidth, size) {
  return textWidth(name, size, true) > maxWidth ? fitNameEnd(shortTitle(name), maxWidth, size) : name;
}

/**
 * Return the header of a zoomed-out card: its name, and its operation if that fits.
 * @param {import("./cards.js").Card} card @param {number} maxWidth @param {number} size
 */
function overviewName({ name, named, badge, alarm, kind, op }, maxWidth, size) {
  const [before, after] = [alarm ? "! " : "", badge && ` ${badge}`];
  const widthOf = (/** @type {string} */ text) => textWidth(text, size, true);
  if (kind === "constant") return [widthOf(name) > maxWidth ? "" : name];
  const title = fitTitle(name, maxWidth - widthOf(before + after), size);
  const remaining = maxWidth - widthOf(`${before}${title}${after}${title && " "}`);
  const operation = fitText(op, remaining, size);
  return [
    before + title + after,
    tspan("how", (title || !named) && (operation === op || operation.length > 4) ? operation : "", title ? 0.3 * size : 0),
  ];
}

/**
 * Create a zoomed-out item, whose text has the same size on screen at every scale.
 * @param {SceneItem} item @param {DrawnItem} parts @param {number} unit
 */
function overviewBody(item, parts, unit) {
  const { card } = item;
  const { picture, kind } = card;
  const [w, height] = cardSize(item);
  const r = cornerRadius(item);
  const { size, room } = parts;
  const pill = kind === "constant" && !picture;
  const isSingleRow = pill || height < 30;
  const headerHeight = isSingleRow ? height : min(height, 13 * unit);
  const rest = height - headerHeight;
  const words = (/** @type {SVGElement} */ one, /** @type {number} */ y, x = w / 2) =>
    setAttributes(one, { x, y: y + 0.36 * size, style: `font-size:${size}px;text-anchor:middle` });
  const box = (/** @type {string} */ className) => rect(className, 0, 0, w, height, r);
  const rows = [];
  if (picture) {
    const k = min((w / 2 - 3 * unit) / picture.w, (rest - 3 * unit) / picture.h);
    parts.pictures = [0.25, 0.75].map((x) => {
      const [left, top] = [x * w - (k * picture.w) / 2, headerHeight + (rest - k * picture.h) / 2];
      return createSvg("g", { transform: `translate(${left} ${top}) scale(${k})` });
    });
    rows.push(...parts.pictures);
  } else if (!isSingleRow && kind !== "broken") {
    const line = rest / 2;
    if (kind !== "block" && line >= 10.5 * unit) {
      rows.push(words(parts.value, headerHeight + line / 2), words(parts.grad, headerHeight + 1.5 * line));
    } else {
      parts.bars = ["fw", "bw"].map((look, k) => {
        const thick = max(unit, min(line - unit, 5 * unit));
        return rect(look, 3 * unit, headerHeight + (k + 0.5) * line - thick / 2, 0, thick);
      });
      rows.push(...parts.bars);
    }
  }
  return [
    ...(kind === "block" ? [rect("stack", STACK_OFFSET, STACK_OFFSET, w, height, r)] : []),
    ...[box("box"), ...(pill ? [] : [path("head", roundedStrip(w, 0, headerHeight, min(r, headerHeight / 2), rest ? 0 : r))])],
    words(text("name", 0, 0, ...overviewName(card, room, size)), headerHeight / 2),
    ...rows,
    box("line"),
  ];
}

/**
 * Create the two heatmaps of a tensor.
 * @param {SceneItem} item @param {DrawnItem} parts @param {{w: number, h: number}} size
 */
function heatmapElements(item, parts, { w, h }) {
  const [width] = cardSize(item);
  const half = width / 2;
  const top = HEADER_HEIGHT + 18;
  const right = half + 4;
  parts.pictures = [PAD, right].map((x) => createSvg("g", { transform: `translate(${x} ${top})` }));
  return [
    path("wash", `M${half} ${HEADER_HEIGHT}H${width}V${top + h + 6}H${half}z`),
    text("cap fw", PAD, HEADER_HEIGHT + 13, "data"),
    text("cap bw", right, HEADER_HEIGHT + 13, "grad", parts.sum, parts.grad),
    ...[PAD, right].map((x) => rect("rim", x - 0.5, top - 0.5, w + 1, h + 1)),
    ...parts.pictures,
    text("cap dim", PAD, top + h + 16, item.card.note),
  ];
}

/** Create a block's summary and its progress bars. @param {SceneItem} item @param {DrawnItem} parts */
function progressElements(item, parts) {
  const bar = (/** @type {string} */ className, /** @type {number} */ y, width = 0) => rect(className, PAD, y, width, 4, 2);
  const ys = [HEADER_HEIGHT + 22, HEADER_HEIGHT + 28];
  parts.bars = ys.map((y, k) => bar(k ? "bw" : "fw", y));
  const tracks = ys.map((y) => bar("way", y, cardSize(item)[0] - 2 * PAD));
  return [text("cap dim", PAD, HEADER_HEIGHT + 15, item.card.note), ...tracks, ...parts.bars];
}

/** Set an attribute if it differs. @param {Element} element @param {string} name @param {string} words */
export function setAttribute(element, name, words) {
  if (element.getAttribute(name) !== words) element.setAttribute(name, words);
}

/**
 * Paint a node in its current state.
 * @param {Graph} graph @param {SceneItem} item @param {DrawnItem} parts @param {Look} look
 * @param {ReturnType<typeof thumbnailCache>} picture @param {number[]} peaks the largest value and gradient, to scale bars
 */
export function paintNode(graph, item, parts, look, picture, peaks) {
  const { card } = item;
  const { value, grad } = look;
  const isNonFinite = typeof value === "number" && !isFinite(value);
  setAttribute(parts.group, "class", `${parts.base} ${look.state}${look.isPending ? " pale" : ""}${isNonFinite ? " bad" : ""}${grad === 0 ? " nil" : typeof grad === "number" && grad < 0 ? " negative" : ""}`);
  parts.group.toggleAttribute("data-unable", look.isUnavailable);
  setAttribute(parts.group, "aria-label", nodeLabel(graph, look, item.node, parts.rule));
  const { room, size, bars } = parts;
  const sum = look.sum && size === 12.5 ? textWidth(look.sum, 11, true) + 5 : 0;
  const fitted = (/** @type {unknown} */ x, reserved = 0) =>
    typeof x === "number" ? fitNumber(x, room - reserved, size, formatBrief) : "";
  setText(parts.value, fitted(value));
  setText(parts.sum, look.sum);
  setText(parts.grad, look.isPending ? "" : look.placeholder || fitted(grad, sum));
  bars.forEach((bar, k) => paintBar(bar, k ? grad : value, peaks[k], room, cardSize(item)[0] / 2));
  parts.pictures.forEach((group, k) => paintPicture(group, k ? grad : value, card, picture));
}

/**
 * Paint a number as a bar, to the right of the centre if positive; its length grows with the square root, as colours
 * do.
 * @param {SVGElement} bar @param {Look["value"]} x @param {number} peak @param {number} width @param {number} centre
 */
function paintBar(bar, x, peak, width, centre) {
  const fraction = typeof x === "number" && isFinite(x) ? (sign(x) * sqrt(min(abs(x) / peak, 1))) / 2 : 0;
  setAttributes(bar, { x: centre + width * min(fraction, 0), width: width * abs(fraction) });
}

/**
 * @param {SVGElement} group @param {Look["value"]} cells @param {import("./cards.js").Card} card
 * @param {ReturnType<typeof thumbnailCache>} picture
 */
function paintPicture(group, cells, card, picture) {
  if (cells === null || typeof cells === "number" || !card.picture) return group.replaceChildren();
  const { w, h: height } = card.picture;
  const { url, crosses, w: cols, h: rows } = picture(cells, w, height, card.scale ?? 1);
  if (group.firstElementChild?.getAttribute("href") === url) return;
  const [cw, ch] = [w / cols, height / rows];
  const d = crosses.slice(0, 400).map(([c, r]) => crossPath(c * cw, r * ch, cw, ch));
  group.replaceChildren(
    createSvg("image", { class: "thumb", href: url, width: w, height, preserveAspectRatio: "none" }),
    ...(d.length ? [path("nan", d.join(""))] : []),
  );
}

/** Return a cached thumbnail renderer: one thumbnail for each array and scale. @param {Uint8Array} ramp */
export function thumbnailCache(ramp) {
  /** @type {WeakMap<Cells, Map<number, ReturnType<typeof thumbnail>>>} */
  const cache = new WeakMap();
  /** @param {Cells} cells @param {number} w @param {number} high @param {number} scale */
  return (cells, w, high, scale) => {
    const byScale = cache.get(cells) ?? new Map();
    if (!byScale.has(scale)) byScale.set(scale, thumbnail(cells, scale, ramp, round(w), round(high)));
    cache.set(cells, byScale);
    return /** @type {ReturnType<typeof thumbnail>} */ (byScale.get(scale));
  };
}

/**
 * @param {SceneItem} item @param {DrawnItem} parts @param {import("./appearance.js").BlockProgress} done @param {string} name
 */
export function paintBlock(item, parts, done, name) {
  const { forward, backward, of, gradients } = done;
  const barLength = cardSize(item)[0] - 2 * Number(parts.bars[0].getAttribute("x"));
  const fractions = [of && forward / of, gradients && backward / gradients];
  parts.bars.forEach((bar, k) => setAttribute(bar, "width", String(barLength * fractions[k])));
  setAttribute(parts.group, "class", `${parts.base}${forward || !of ? "" : " pale"}`);
  const { badge, note } = item.card;
  const label = `${name} ${badge}, closed block of ${note}, ${forward} of ${of} computed`;
  setAttribute(parts.group, "aria-label", `${label}, ${backward} gradients final`);
}

/** Create a wire: its line with its arrowhead, and its label if it has one. @param {SceneWire} wire */
export function createWire({ label }) {
  const group = createSvg("g", {}, path("line"), path("tip"));
  return { group, over: label && text("label", label.x + label.w, label.y + 8.9) };
}

/**
 * Point a wire forward, or back once a gradient has flowed over it.
 * @param {Element} group @param {SceneWire} wire @param {boolean} isBackward
 */
export function orientWire(group, { points }, isBackward) {
  const [line, tip] = group.children;
  setAttribute(line, "d", curvePath(points, isBackward));
  setAttribute(tip, "d", isBackward ? arrowheadPath(points[0], -1, 1.2) : arrowheadPath(points[points.length - 1]));
}

/**
 * Create the frame of an open block; clicking its title closes it.
 * @param {import("./scene.js").Hull} hull @param {number} [unit]
 */
export function createFrame({ x, y, w, h: height, name }, unit = 0) {
  const size = max(11.5, min(SMALL_FONT * unit, 26)); // as far as the gap below the bar allows
  const title = setAttributes(text("", 24, 11 + 0.36 * size, fitTitle(name, w - 30, size)), { style: `font-size:${size}px` });
  const header = createSvg("g", {}, path("sign", "M9 11h9"), title);
  const bar = path("bar", roundedStrip(w, 0, 22, 6, 0));
  const frame = createSvg("g", { class: "frame" }, createSvg("title", {}, `Close ${name}`), bar, header);
  const group = createSvg("g", { transform: `translate(${x} ${y})` }, rect("hull", 0, 0, w, height, 6), frame);
  return { group, header, x, maxShift: max(0, w - 34 - textWidth(name, size, true)) };
}
