/**
 * DOM helpers: the only place where the player creates elements. Names, labels and source lines come from users and may
 * contain anything, so they always become text nodes, never markup.
 *
 * A panel returns a description of its content, built with `tag`; `fill` updates the page to match. It touches only
 * what differs: laying out and announcing unchanged content again would take longer than the rest of a step.
 */

/**
 * Attributes of an element. A function is a listener (`onclick`), a Boolean sets or removes the attribute, `label` is
 * `aria-label`.
 * @typedef {{[name: string]: any, [on: `on${string}`]: ((event: any) => unknown) | undefined}} Attributes
 */
/**
 * Description of an element. `name` includes its classes, as "div.row".
 * @typedef {{name: string, has: Attributes, inside: Child[]}} Tag
 */
/** @typedef {string | Node | Tag | null | undefined | false} Child */

const HTML = "http://www.w3.org/1999/xhtml";
const SVG = "http://www.w3.org/2000/svg";
const SPACES = /** @type {Record<string, string>} */ ({ svg: SVG, math: "http://www.w3.org/1998/Math/MathML" });
const PLAIN_MATH =
  /^(math|m(i|n|o|row|frac|sup|sub|subsup|text|sqrt|root|over|under|underover|space|table|tr|td|style))$/;

/** The description from which each element was last rendered. */
const DESCRIBED = /** @type {WeakMap<Node, Tag>} */ (new WeakMap());

/** Describe an element. @param {string} name @param {Attributes} [has] @param {Child[]} inside @returns {Tag} */
export const tag = (name, has = {}, ...inside) => ({ name, has, inside });

/** Create an HTML element. @param {string} name @param {Attributes} [has] @param {Child[]} inside @returns {any} */
export const h = (name, has, ...inside) => make(HTML, tag(name, has, ...inside));

/** Create an SVG element. @param {string} name @param {Attributes} [has] @param {Child[]} inside */
export const drawn = (name, has, ...inside) => /** @type {SVGElement} */ (make(SVG, tag(name, has, ...inside)));

/** @param {string | null} space @param {Tag} like */
function make(space, like) {
  const [name, ...classes] = like.name.split(".");
  const element = document.createElementNS(SPACES[name] ?? space, name);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  return become(element, like, {});
}

/** @param {Element} element @param {Tag} description @param {Attributes} before */
function become(element, { has, inside }, before) {
  fill(element, ...inside);
  dress(element, has, before);
  return element;
}


/** Update the children of an element to match descriptions. @param {Element} parent @param {Child[]} children */
export function fill(parent, ...children) {
  let old = parent.firstChild;
  for (const child of children) {
    if (child == null || child === false) continue;
    const node = nodeOf(child, old, parent);
    if (!old) parent.append(node);
    else if (node !== old) old.replaceWith(node);
    old = node.nextSibling;
  }
  for (let next; old; old = next) {
    next = old.nextSibling;
    old.remove();
  }
}

/**
 * Return a node for a description, reusing the old one if possible.
 * @param {string | Node | Tag} child @param {ChildNode | null} old @param {Element} parent @returns {ChildNode}
 */
function nodeOf(child, old, parent) {
  if (child instanceof Node) return /** @type {ChildNode} */ (child);
  if (typeof child === "string") {
    if (!(old instanceof Text)) return document.createTextNode(child);
    if (old.data !== child) old.data = child;
    return old;
  }
  const before = old ? DESCRIBED.get(old) : undefined;
  if (old && before === child) return old;
  const same = before?.name === child.name;
  const element = same
    ? become(/** @type {Element} */ (old), child, before.has)
    : make(parent.namespaceURI, child);
  DESCRIBED.set(element, child);
  return element;
}

/**
 * Set the attributes that differ from `before`.
 * @param {any} element @param {Attributes} has @param {Attributes} [before]
 */
export function dress(element, has, before = {}) {
  for (const key in before) if (!(key in has)) element.removeAttribute(key);
  for (const key in has) {
    const value = has[key];
    const aria = key.startsWith("aria-");
    if (key.startsWith("on")) element[key] = value;
    else if (key === "value") setValue(element, String(value));
    else if (value === before[key]) continue;
    else if (value == null || (value === false && !aria)) element.removeAttribute(key);
    else element.setAttribute(key === "label" ? "aria-label" : key, value === true && !aria ? "" : value);
  }
  return element;
}

/** Set an input's value, unless the user is typing a number into it. @param {any} element @param {string} value */
function setValue(element, value) {
  if (element.value !== value && !element.matches("[type=number]:focus")) element.value = value;
}

/**
 * Call `draw` and keep the focus. If the focused element is removed, its nearest remaining ancestor gets the focus.
 * @param {ShadowRoot} root @param {() => void} draw
 */
export function keepFocus(root, draw) {
  const around = /** @type {HTMLElement[]} */ ([]);
  for (let at = root.activeElement; at; at = at.parentElement) around.push(/** @type {HTMLElement} */ (at));
  draw();
  if (root.activeElement) return;
  const left = around.find((one) => one.isConnected);
  if (left) left.tabIndex = -1;
  left?.focus({ preventScroll: true });
}

/**
 * Memoise a function by the identity of its last arguments.
 * @template T
 * @param {(...given: any[]) => T} compute @returns {(...given: any[]) => T}
 */
export function remember(compute) {
  let last = /** @type {any[]} */ ([]);
  let found = /** @type {T | undefined} */ (undefined);
  return (...given) => {
    if (found === undefined || given.some((one, k) => one !== last[k])) found = compute(...(last = given));
    return found;
  };
}

/** Return a listener that calls `act` instead of submitting the form. @param {(...fields: any[]) => void} act */
export const submit = (act) => (/** @type {Event & {target: any}} */ event) => {
  event.preventDefault();
  act(...event.target);
};

/** Describe a button icon in the colour of its text. @param {string} path */
export function icon(path) {
  const box = { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": true, fill: "currentColor" };
  return tag("svg", box, tag("path", { d: path }));
}

/** Set the text content if it differs. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Show or hide an element. @param {HTMLElement} element @param {boolean} shown */
export function show(element, shown) {
  if (element.hidden === shown) element.hidden = !shown;
}

/**
 * Keep only MathML elements and attributes, so that a trace cannot inject scripts.
 * @param {Element} from @returns {Tag | string}
 */
function cleanMath(from) {
  if (!PLAIN_MATH.test(from.localName)) return from.textContent ?? "";
  const has = /** @type {Attributes} */ ({});
  for (const name of ["mathvariant", "stretchy", "display", "fence", "form", "columnalign"]) {
    const value = from.getAttribute(name);
    if (value !== null) has[name] = value;
  }
  const inside = [...from.childNodes].map((child) =>
    child instanceof Element ? cleanMath(child) : child instanceof Text && child.data,
  );
  return tag(from.localName, has, ...inside);
}

/** Cache of parsed formulas: a step shows a formula twice, and the next one reuses most of its parts. */
const PARSED = /** @type {Map<string, Tag | string>} */ (new Map());

/**
 * Parse MathML into an element; return `text` if it cannot be parsed.
 * @param {string} markup @param {string} text
 */
export function math(markup, text) {
  const known = PARSED.get(markup);
  if (known !== undefined) return known;
  const template = h("template"); // nothing inside a template runs or loads
  template.innerHTML = markup;
  const root = template.content.querySelector("math");
  const made = root ? cleanMath(root) : text;
  if (PARSED.size >= 500) PARSED.clear();
  PARSED.set(markup, made);
  return made;
}

/**
 * Replace the player with a message that says why it could not start.
 * @param {HTMLElement} host @param {unknown} error
 */
export function refusal(host, error) {
  const text = `This graph cannot be played: ${error instanceof Error ? error.message : error}`;
  host.replaceWith(h("div", { class: host.className, role: "alert" }, text));
  console.error(error);
}
