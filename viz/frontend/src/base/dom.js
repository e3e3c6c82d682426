/**
 * DOM helpers: the only place where the player creates elements. Names, labels and source lines come from users and may
 * contain anything, so they always become text nodes, never markup.
 *
 * A panel returns a description of its content, built with `tag`; `setChildren` updates the page to match. It touches only
 * what differs: laying out and announcing unchanged content again would take longer than the rest of a step.
 */

/**
 * Attributes of an element. A function is a listener (`onclick`), a Boolean sets or removes the attribute, `label` is
 * `aria-label`.
 * @typedef {{[name: string]: any, [on: `on${string}`]: ((event: any) => unknown) | undefined}} Attributes
 */
/**
 * Description of an element. `name` includes its classes, as "div.row".
 * @typedef {{name: string, attributes: Attributes, children: Child[]}} Tag
 */
/** @typedef {string | Node | Tag | null | undefined | false} Child */

const HTML = "http://www.w3.org/1999/xhtml";
const SVG = "http://www.w3.org/2000/svg";
const NAMESPACES = /** @type {Record<string, string>} */ ({ svg: SVG, math: "http://www.w3.org/1998/Math/MathML" });
const MATH_ELEMENTS =
  /^(math|m(i|n|o|row|frac|sup|sub|subsup|text|sqrt|root|over|under|underover|space|table|tr|td|style))$/;

/** The description from which each element was last rendered. */
const DESCRIPTIONS = /** @type {WeakMap<Node, Tag>} */ (new WeakMap());

/** Describe an element. @param {string} name @param {Attributes} [attributes] @param {Child[]} children @returns {Tag} */
export const tag = (name, attributes = {}, ...children) => ({ name, attributes, children });

/** Create an HTML element. @param {string} name @param {Attributes} [attributes] @param {Child[]} children @returns {any} */
export const h = (name, attributes, ...children) => createElement(HTML, tag(name, attributes, ...children));

/** Create an SVG element. @param {string} name @param {Attributes} [attributes] @param {Child[]} children */
export const createSvg = (name, attributes, ...children) => /** @type {SVGElement} */ (createElement(SVG, tag(name, attributes, ...children)));

/** @param {string | null} namespace @param {Tag} description */
function createElement(namespace, description) {
  const [name, ...classes] = description.name.split(".");
  const element = document.createElementNS(NAMESPACES[name] ?? namespace, name);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  return updateElement(element, description, {});
}

/** @param {Element} element @param {Tag} description @param {Attributes} before */
function updateElement(element, { attributes, children: inside }, before) {
  setChildren(element, ...inside);
  setAttributes(element, attributes, before);
  return element;
}


/** Update the children of an element to match descriptions. @param {Element} parent @param {Child[]} children */
export function setChildren(parent, ...children) {
  let current = parent.firstChild;
  for (const child of children) {
    if (child == null || child === false) continue;
    const node = updateNode(child, current, parent);
    if (!current) parent.append(node);
    else if (node !== current) current.replaceWith(node);
    current = node.nextSibling;
  }
  for (let next; current; current = next) {
    next = current.nextSibling;
    current.remove();
  }
}

/**
 * Return a node for a description, reusing the old one if possible.
 * @param {string | Node | Tag} child @param {ChildNode | null} old @param {Element} parent @returns {ChildNode}
 */
function updateNode(child, old, parent) {
  if (child instanceof Node) return /** @type {ChildNode} */ (child);
  if (typeof child === "string") {
    if (!(old instanceof Text)) return document.createTextNode(child);
    if (old.data !== child) old.data = child;
    return old;
  }
  const before = old ? DESCRIPTIONS.get(old) : undefined;
  if (old && before === child) return old;
  const isReusable = before?.name === child.name;
  const element = isReusable
    ? updateElement(/** @type {Element} */ (old), child, before.attributes)
    : createElement(parent.namespaceURI, child);
  DESCRIPTIONS.set(element, child);
  return element;
}

/**
 * Set the attributes that differ from `before`.
 * @param {any} element @param {Attributes} attributes @param {Attributes} [before]
 */
export function setAttributes(element, attributes, before = {}) {
  for (const key in before) if (!(key in attributes)) element.removeAttribute(key);
  for (const key in attributes) {
    const value = attributes[key];
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
  const ancestors = /** @type {HTMLElement[]} */ ([]);
  for (let at = root.activeElement; at; at = at.parentElement) ancestors.push(/** @type {HTMLElement} */ (at));
  draw();
  if (root.activeElement) return;
  const remaining = ancestors.find((one) => one.isConnected);
  if (remaining) remaining.tabIndex = -1;
  remaining?.focus({ preventScroll: true });
}

/**
 * Memoise a function by the identity of its last arguments.
 * @template T
 * @param {(...given: any[]) => T} compute @returns {(...given: any[]) => T}
 */
export function memoize(compute) {
  let lastArgs = /** @type {any[]} */ ([]);
  let result = /** @type {T | undefined} */ (undefined);
  return (...args) => {
    if (result === undefined || args.some((one, k) => one !== lastArgs[k])) result = compute(...(lastArgs = args));
    return result;
  };
}

/** Return a listener that calls `act` instead of submitting the form. @param {(...fields: any[]) => void} act */
export const onSubmit = (act) => (/** @type {Event & {target: any}} */ event) => {
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

/** Show or hide an element. @param {HTMLElement} element @param {boolean} isVisible */
export function setVisible(element, isVisible) {
  if (element.hidden === isVisible) element.hidden = !isVisible;
}

/**
 * Keep only MathML elements and attributes, so that a trace cannot inject scripts.
 * @param {Element} element @returns {Tag | string}
 */
function sanitizeMath(element) {
  if (!MATH_ELEMENTS.test(element.localName)) return element.textContent ?? "";
  const attributes = /** @type {Attributes} */ ({});
  for (const name of ["mathvariant", "stretchy", "display", "fence", "form", "columnalign"]) {
    const value = element.getAttribute(name);
    if (value !== null) attributes[name] = value;
  }
  const inside = [...element.childNodes].map((child) =>
    child instanceof Element ? sanitizeMath(child) : child instanceof Text && child.data,
  );
  return tag(element.localName, attributes, ...inside);
}

/** Cache of parsed formulas: a step shows a formula twice, and the next one reuses most of its parts. */
const PARSED_FORMULAS = /** @type {Map<string, Tag | string>} */ (new Map());

/**
 * Parse MathML into an element; return `text` if it cannot be parsed.
 * @param {string} markup @param {string} text
 */
export function parseMath(markup, text) {
  const cached = PARSED_FORMULAS.get(markup);
  if (cached !== undefined) return cached;
  const template = h("template"); // nothing inside a template runs or loads
  template.innerHTML = markup;
  const root = template.content.querySelector("math");
  const parsed = root ? sanitizeMath(root) : text;
  if (PARSED_FORMULAS.size >= 500) PARSED_FORMULAS.clear();
  PARSED_FORMULAS.set(markup, parsed);
  return parsed;
}

/**
 * Replace the player with a message that says why it could not start.
 * @param {HTMLElement} host @param {unknown} error
 */
export function showError(host, error) {
  const text = `This graph cannot be played: ${error instanceof Error ? error.message : error}`;
  host.replaceWith(h("div", { class: host.className, role: "alert" }, text));
  console.error(error);
}
