/**
 * The one way this player makes elements. Names, labels and source lines come from users and may hold anything, so text
 * is always text here, never markup.
 */

/** @typedef {string | Node | null | undefined | false} Child */

const SVG = "http://www.w3.org/2000/svg";
const MATHML = "http://www.w3.org/1998/Math/MathML";
const PLAIN_MATH =
  /^(math|m(i|n|o|row|frac|sup|sub|subsup|text|sqrt|root|over|under|underover|space|table|tr|td|style))$/;

/** Sets attributes. @param {Element} element @param {Record<string, any>} attributes */
export function dress(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (typeof value === "boolean") element.toggleAttribute(key, value);
    else if (value != null) element.setAttribute(key, String(value));
  }
}

/**
 * An HTML element. A function is a listener (`onclick`), true and false are attributes that are there or not.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {Child[]} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  dress(element, attributes);
  element.append(.../** @type {(string | Node)[]} */ (children.filter((child) => child != null && child !== false)));
  return element;
}

/** An SVG element. @param {string} tag @param {Record<string, any>} [attributes] @param {(Node | string)[]} children */
export function drawn(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  dress(element, attributes);
  element.append(...children);
  return element;
}

/** A small picture for a button, drawn in the colour of its text. @param {string} path */
export function icon(path) {
  const box = { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", fill: "currentColor" };
  return drawn("svg", box, drawn("path", { d: path }));
}

/** Sets text, if it is another. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Shows an element or hides it. @param {HTMLElement} element @param {boolean} shown */
export function show(element, shown) {
  if (element.hidden === shown) element.hidden = !shown;
}

/**
 * Puts other children in. The focus stays on what has the same `data-key`, or goes to the element itself: it is never
 * lost.
 * @param {HTMLElement} element @param {Child[]} children
 */
export function refill(element, ...children) {
  const root = /** @type {ShadowRoot | Document} */ (element.getRootNode());
  const focused = /** @type {HTMLElement | null} */ (root.activeElement ?? null);
  const inside = focused !== null && focused !== element && element.contains(focused);
  const key = inside ? focused.dataset.key : undefined;
  element.replaceChildren(.../** @type {Node[]} */ (children.filter((child) => child != null && child !== false)));
  if (!inside) return;
  const again = element.contains(focused) ? focused : null;
  const same = again ?? (key === undefined ? null : element.querySelector(`[data-key="${CSS.escape(key)}"]`));
  if (same === null) element.tabIndex = -1;
  /** @type {HTMLElement} */ (same ?? element).focus({ preventScroll: true });
}

/**
 * A copy of MathML without anything that is not MathML, so that no trace can smuggle a script in.
 * @param {Element} from
 */
function cleanMath(from) {
  if (!PLAIN_MATH.test(from.localName)) return document.createTextNode(from.textContent ?? "");
  const made = document.createElementNS(MATHML, from.localName);
  for (const name of ["mathvariant", "stretchy", "display", "fence", "form", "columnalign"]) {
    const value = from.getAttribute(name);
    if (value !== null) made.setAttribute(name, value);
  }
  for (const child of from.childNodes) {
    if (child.nodeType === Node.ELEMENT_NODE) made.append(cleanMath(/** @type {Element} */ (child)));
    else if (child.nodeType === Node.TEXT_NODE) made.append(child.textContent ?? "");
  }
  return made;
}

/** What was parsed before: a step shows a formula twice, and the next one most of its parts. */
const MADE = /** @type {Map<string, Node>} */ (new Map());

/**
 * MathML text as an element; where it cannot be read, as the `text` beside it.
 * @param {string} markup
 * @param {string} text
 */
export function math(markup, text) {
  let made = MADE.get(markup);
  if (!made) {
    const root = new DOMParser().parseFromString(markup, "text/html").querySelector("math");
    if (root === null) return h("span", {}, text);
    if (MADE.size >= 500) MADE.clear();
    MADE.set(markup, (made = cleanMath(root)));
  }
  return made.cloneNode(true);
}

/** An element of MathML. @param {string} tag @param {(string | Node)[]} children */
export function mathElement(tag, ...children) {
  const element = document.createElementNS(MATHML, tag);
  element.append(...children);
  return element;
}

/** Says in the place of a player why there is none. @param {HTMLElement} host @param {unknown} error */
export function refusal(host, error) {
  const text = `This graph cannot be played: ${error instanceof Error ? error.message : error}`;
  host.replaceWith(h("div", { class: host.className, role: "alert" }, text));
  console.error(error);
}
