/**
 * Cards on a canvas, with the looks of those in SVG (svgparts.js, style.js), as far as they can be seen from there.
 */
import { CAPTION, HEAD, PAD, RAISED, RIM, ROW, STACK } from "./cards.js";
import { curvePath, middleOf, tipPath } from "./curves.js";
import { heatBitmap } from "./heatmap.js";
import { productText } from "./looks.js";
import { fitNumber, textWidth } from "./measure.js";
import { pretty } from "../engine/notation.js";
import { leaderPath, wiresInto, wordsAt, wordsWidth } from "./overlay.js";
import { cornerOf, stripPath } from "./svgparts.js";

/** @typedef {import("./scene.js").SceneItem} SceneItem */
/** @typedef {import("../types.js").Cells} Cells */
/** @typedef {import("./looks.js").Look} Look */
/**
 * @typedef {{colours: Record<string, string>, font: string, ramp: Uint8Array,
 *   pictures: WeakMap<Cells, {scale: number, bitmap: HTMLCanvasElement}>, scene: import("./scene.js").Scene,
 *   playback: import("../types.js").Playback}} Brush
 */

/**
 * @param {CanvasRenderingContext2D} context @param {string} words @param {number} x @param {number} y
 * @param {string} font @param {string} colour @param {CanvasTextAlign} [align]
 */
function put(context, words, x, y, font, colour, align = "left") {
  context.font = font;
  context.fillStyle = colour;
  context.textAlign = align;
  context.fillText(words, x, y);
}

/**
 * A ring around an item.
 * @param {CanvasRenderingContext2D} context @param {SceneItem} item @param {number} out @param {string} colour
 * @param {number} wide @param {number[]} [dash]
 */
export function ringAround(context, item, out, colour, wide, dash = []) {
  context.strokeStyle = colour;
  context.lineWidth = wide;
  context.setLineDash(dash.map((length) => length * Math.max(1, wide / 2)));
  context.beginPath();
  context.roundRect(item.x - out, item.y - out, item.w + 2 * out, item.h + 2 * out, cornerOf(item) + out);
  context.stroke();
  context.setLineDash([]);
}

/**
 * A node. Without a look there is no text, for it could not be read.
 * @param {CanvasRenderingContext2D} context @param {SceneItem} item @param {Brush} brush
 * @param {Look | null} look @param {boolean} pale
 */
export function paintNodeBox(context, item, brush, look, pale) {
  const { card } = item;
  const { colours } = brush;
  const [w, hgt] = [item.w - 2 * card.rim, item.h - 2 * card.rim];
  const r = cornerOf(item);
  const pill = card.kind === "constant" && !card.picture;
  const head = pale ? "page" : card.output ? "output" : card.kind === "leaf" ? "leaf" : "op";
  const edge =
    card.alarm || card.kind === "broken"
      ? "alarm"
      : pale
        ? "rim"
        : card.output
          ? "output"
          : card.kind === "leaf"
            ? "leaf"
            : "line";
  context.save();
  context.translate(item.x + card.rim, item.y + card.rim);
  context.fillStyle = colours[pale ? "page" : "card"];
  context.beginPath();
  context.roundRect(0, 0, w, hgt, r);
  context.fill();
  if (!pill && !pale && card.kind !== "broken") {
    context.fillStyle = colours.wash;
    context.fill(
      new Path2D(
        card.picture
          ? `M${w / 2} ${HEAD}H${w}V${HEAD + 24 + card.picture.h}H${w / 2}z`
          : stripPath(w, HEAD + ROW, hgt, r, false),
      ),
    );
  }
  if (!pill) {
    context.fillStyle = colours[head];
    context.fill(new Path2D(stripPath(w, 0, HEAD, r, true)));
  }
  context.strokeStyle = colours[edge];
  context.lineWidth = edge === "alarm" ? 2.5 : 1.25;
  context.setLineDash(card.kind === "broken" ? [7, 4] : card.still && !pill ? [4, 3] : []);
  context.beginPath();
  context.roundRect(0, 0, w, hgt, r);
  context.stroke();
  context.setLineDash([]);
  if (card.output) {
    context.beginPath();
    context.roundRect(-RIM, -RIM, item.w, item.h, r + RIM);
    context.stroke();
  }
  if (look) paintWords(context, item, brush, look, pale ? "muted" : head === "op" ? "on-op" : `on-${head}`);
  context.restore();
}

/**
 * @param {CanvasRenderingContext2D} context @param {SceneItem} item @param {Brush} brush @param {Look} look
 * @param {string} onHead
 */
function paintWords(context, item, brush, look, onHead) {
  const { card } = item;
  const { colours, font } = brush;
  const w = item.w - 2 * card.rim;
  const small = `10.5px ${font}`;
  if (card.kind === "constant" && !card.picture) {
    put(context, "const", PAD + 1, 17, small, colours.muted);
    return put(context, card.name, w - PAD - 1, 17.5, `12.5px ${font}`, colours.ink, "right");
  }
  const title = `${card.named ? "700" : "italic 400"} 13px ${font}`;
  put(context, card.name, PAD, 17, title, colours[onHead]);
  if (card.rule)
    put(context, card.rule, PAD + context.measureText(card.name).width, 17, `13px ${font}`, colours[onHead]);
  if (card.alarm) paintBadge(context, brush, w - 13);
  if (card.kind === "broken") return put(context, RAISED, PAD, HEAD + 15.5, `600 12.5px ${font}`, colours.alarm);
  if (card.picture) return paintTensor(context, item, brush, look, small);
  const [first, second] = [HEAD + 14.5, HEAD + ROW + 14.5];
  const room = w - 2 * PAD - CAPTION;
  const show = (/** @type {unknown} */ x) => (typeof x === "number" ? fitNumber(x, room, 12.5, pretty) : "");
  put(context, "data", PAD, first, small, colours[look.pale ? "muted" : "forward"]);
  put(context, show(look.value), w - PAD, first, `12.5px ${font}`, colours.ink, "right");
  put(context, "grad", PAD, second, small, colours[look.pale ? "muted" : "backward"]);
  if (look.sum)
    put(context, look.sum, PAD + textWidth("grad", 10.5) + 4, second, `700 10.5px ${font}`, colours.backward);
  const grad = look.pale ? "" : show(look.grad) || look.sign;
  put(
    context,
    grad,
    w - PAD,
    second,
    `${look.state === "final" ? "700 " : ""}12.5px ${font}`,
    colours[look.sign ? "muted" : "ink"],
    "right",
  );
}

/**
 * @param {CanvasRenderingContext2D} context @param {SceneItem} item @param {Brush} brush @param {Look} look
 * @param {string} small
 */
function paintTensor(context, item, brush, look, small) {
  const { card } = item;
  const { colours } = brush;
  const right = (item.w - 2 * card.rim) / 2 + 4;
  const { w, h: hgt } = /** @type {{w: number, h: number}} */ (card.picture);
  const top = HEAD + 18;
  put(context, "data", PAD, HEAD + 13, small, colours.forward);
  put(context, `grad ${look.pale ? "" : look.sign || look.sum}`, right, HEAD + 13, small, colours.backward);
  put(context, card.note, PAD, top + hgt + 16, small, colours.muted);
  context.lineWidth = 1;
  context.strokeStyle = colours.rim;
  context.imageSmoothingEnabled = false;
  for (const [x, cells] of /** @type {[number, Look["value"]][]} */ ([
    [PAD, look.value],
    [right, look.grad],
  ])) {
    context.strokeRect(x - 0.5, top - 0.5, w + 1, hgt + 1);
    if (cells === null || typeof cells === "number" || !cells.cells.length) continue;
    const scale = card.scale ?? 1;
    let made = brush.pictures.get(cells);
    if (made?.scale !== scale) {
      made = { scale, bitmap: heatBitmap(context.canvas.ownerDocument, cells, scale, brush.ramp) };
      brush.pictures.set(cells, made);
    }
    context.drawImage(made.bitmap, x, top, w, hgt);
    if (cells.nan || cells.inf) paintCrosses(context, cells, x, top, w / cells.cols, hgt / cells.rows, colours.ink);
  }
}

/**
 * A closed block.
 * @param {CanvasRenderingContext2D} context @param {SceneItem} item @param {Brush} brush
 * @param {{forward: number, backward: number, of: number, gradients: number}} done @param {boolean} worded
 * @param {boolean} pale
 */
export function paintBlockBox(context, item, brush, done, worded, pale) {
  const { card } = item;
  const { colours, font } = brush;
  const [w, hgt] = [item.w - STACK, item.h - STACK];
  context.save();
  context.translate(item.x, item.y);
  context.lineWidth = 1.25;
  for (const off of [STACK, STACK / 2, 0]) {
    context.fillStyle = colours.card;
    context.strokeStyle = colours[card.alarm && !off ? "alarm" : "line"];
    context.beginPath();
    context.roundRect(off, off, w, hgt, 5);
    context.fill();
    context.stroke();
  }
  context.fillStyle = colours.rim;
  context.fill(new Path2D(stripPath(w, 0, HEAD, 5, true)));
  const long = w - 2 * PAD;
  const shares = [done.of ? done.forward / done.of : 0, done.gradients ? done.backward / done.gradients : 0];
  for (const [k, y] of [HEAD + 22, HEAD + 28].entries()) {
    context.fillStyle = colours.rim;
    context.fillRect(PAD, y, long, 4);
    context.fillStyle = colours[k ? "backward" : "forward"];
    context.fillRect(PAD, y, long * shares[k], 4);
  }
  if (card.alarm && worded) paintBadge(context, brush, w - 13);
  if (worded) {
    put(context, `+ ${card.name} ${card.badge}`, PAD, 17, `700 13px ${font}`, colours[pale ? "muted" : "ink"]);
    put(context, card.note, PAD, HEAD + 15, `10.5px ${font}`, colours.muted);
  }
  context.restore();
}

/** The sign of an alarm. @param {CanvasRenderingContext2D} context @param {Brush} brush @param {number} x */
function paintBadge(context, { colours, font }, x) {
  context.fillStyle = colours.alarm;
  context.beginPath();
  context.arc(x, HEAD / 2, 7.5, 0, 7);
  context.fill();
  put(context, "!", x, HEAD / 2 + 4.5, `700 12.5px ${font}`, colours["on-alarm"], "center");
}

/**
 * Crosses where there is no finite number.
 * @param {CanvasRenderingContext2D} context @param {Cells} cells
 * @param {number} x @param {number} y @param {number} w @param {number} high of a cell @param {string} colour
 */
function paintCrosses(context, cells, x, y, w, high, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  cells.cells.forEach((number, k) => {
    if (Number.isFinite(number)) return;
    const [left, top] = [x + (k % cells.cols) * w, y + Math.floor(k / cells.cols) * high];
    context.moveTo(left, top);
    context.lineTo(left + w, top + high);
    context.moveTo(left + w, top);
    context.lineTo(left, top + high);
  });
  context.stroke();
}

/**
 * What is active: its glow, its edge, its product.
 * @param {CanvasRenderingContext2D} context @param {import("../types.js").Graph} graph @param {Brush} brush
 * @param {number} scale
 */
export function paintMoment(context, graph, brush, scale) {
  const moment = brush.playback.moment();
  if (moment.node < 0) return;
  const { scene, colours, font } = brush;
  const large = 1 / Math.min(scale, 1);
  const backward = moment.kind !== "forward";
  const item = scene.items[scene.itemOf(moment.node)];
  const wires =
    moment.kind === "edge"
      ? [scene.wires[scene.wireOf[moment.edge]]].filter(Boolean)
      : backward
        ? []
        : wiresInto(scene, graph, moment.node);
  context.strokeStyle = colours[backward ? "hot" : "halo"];
  context.lineWidth = 4.5 * Math.sqrt(large);
  for (const wire of wires) context.stroke(new Path2D(curvePath(wire.points)));
  context.globalAlpha = 0.5;
  ringAround(context, item, 5, colours[backward ? "hot" : "halo"], 9 * Math.sqrt(large));
  context.globalAlpha = 1;
  ringAround(context, item, 2, colours[backward ? "hot" : "forward"], 2.5 * Math.sqrt(large));
  if (moment.kind !== "edge") return;
  context.fillStyle = colours.hot;
  for (const { points } of wires)
    context.fill(new Path2D(tipPath([points[0][0] + 1, points[0][1]], -1, 1.6 * Math.sqrt(large))));
  const words = productText(moment);
  if (!words) return;
  const wide = wordsWidth(words) * large;
  const [x, y] = wordsAt(scene, graph, moment.edge, wide);
  context.fillStyle = context.strokeStyle = colours.backward;
  context.lineWidth = 1.5 * large;
  for (const { points } of wires) context.stroke(new Path2D(leaderPath(middleOf(points), [x, y])));
  context.beginPath();
  context.roundRect(x - wide / 2, y - 10 * large, wide, 20 * large, 10 * large);
  context.fill();
  put(context, words, x, y + 4.3 * large, `600 ${12 * large}px ${font}`, colours.page, "center");
}
