/**
 * The CSS of the drawing, and theme detection: the page's theme takes precedence over the system's.
 *
 * The player lives in a shadow root, whose selectors cannot match outside it. So `followTheme` inspects the page and
 * sets the attribute `data-mg-theme` on the player's root.
 */
import { FONT, PALETTE } from "./palette.js";

/** @param {"light" | "dark"} theme */
const themeVariables = (theme) =>
  Object.entries(PALETTE[theme])
    .map(([name, colour]) => `--mg-${name}:${colour}`)
    .join(";");

const DRAWING_RULES = `
.mg-view{position:relative;overflow:auto;overscroll-behavior:contain;max-height:var(--mg-view-height,70vh);
background:$page;border-radius:8px;touch-action:pan-x pan-y;cursor:grab;font-family:$font;scrollbar-width:thin;
scrollbar-color:$line transparent}
.mg-view.mg-dragged{cursor:grabbing;user-select:none}
.mg-view:focus-visible{outline-offset:-3px}
.mg-away{position:absolute;left:8px;bottom:4px;font-size:12px;color:$ink;background:$wash;border-radius:8px;padding:0 8px;&:empty{display:none}}
.mg-stage{position:relative;margin:0 auto;contain:strict}
.mg-stage>svg{position:absolute;left:0;top:0;width:100%;height:100%;isolation:isolate;pointer-events:none}
.mg-stage>canvas{position:absolute}
.mg-drawing{font-size:12.5px;font-variant-numeric:tabular-nums;user-select:none;overflow:clip;
& text{white-space:pre;fill:$ink}
.item,.wire{--edge:$line;--wide:1.25px}
.item{--ground:$card;--head:$op;--on:$ink}
.leaf{--edge:$leaf;--head:$leaf;--on:$on-leaf}
.output{--edge:$output;--head:$output;--on:$on-output}
.block{--head:$rim;--on:$ink}
.pale{--edge:$rim}
.pale:not(.block){--head:$page;--ground:$page}
.bad,.broken{--edge:$alarm;--wide:2.5px}
.wire{--wide:1.5px}
.many{--wide:2.5px}
.wire.positive{--edge:$positive}
.wire.negative{--edge:$negative}
.mixed{--edge:$mixed}
.zero .line{stroke-dasharray:2 5}
.future{--edge:$rim}
.line,.ring,.rim,.nan,.sign,.select,.focus,.hover,.halo,.core,.flow,.leader{fill:none}
.line,.ring{stroke:var(--edge);stroke-width:calc(var(--wide)*var(--large,1))}
.still .line{stroke-dasharray:4 3}
.broken .line{stroke-dasharray:7 4}
.none .line{stroke-dasharray:2 4}
.tip{fill:var(--edge)}
.box{fill:var(--ground)}
.head{fill:var(--head)}
.name{font-size:13px;font-weight:700;fill:var(--on)}
.unnamed{font-weight:400;font-style:italic}
.rule,.how{font-weight:400;font-style:normal}
.rule,.label{font-family:math,serif}
.cap,.sum{font-size:11px}
.sum,.final .grad,.badge+text{font-weight:700}
.raised,.frame text,.pill+text{font-weight:600}
.num,.label{text-anchor:end}
.badge+text,.pill+text{text-anchor:middle}
.fw{fill:$forward}
.bw,.sum,.pill,.label,.grad{fill:$backward}
.negative :is(.grad,.bw){fill:$negative}
.dim,.nil .grad,.wait .grad,.blocked .grad,.pale text{fill:$muted}
.wash{fill:$wash}
.way,.bar{fill:$rim}
.badge,.raised{fill:$alarm}
.badge+text{fill:$on-alarm}
.nan{stroke:$ink}
.rim{stroke:$rim}
.stack{fill:$card;stroke:$line}
.pale .thumb{display:none}
.pale .wash{fill:none}
.thumb{image-rendering:pixelated}
.item,.frame{pointer-events:auto;outline:none}
.hull{fill:$ink;fill-opacity:.025;stroke:$line;stroke-dasharray:1 3;stroke-linecap:round}
.bar{fill-opacity:.55}
.frame{cursor:pointer}
.frame:hover .bar{fill-opacity:1}
.frame text{font-size:11.5px}
.sign{stroke:$muted;stroke-width:1.5}
.mg-far & .label{display:none}
.label{font-size:12.5px;paint-order:stroke;stroke:$page;stroke-width:8;stroke-linejoin:round}
.overlay{pointer-events:none}
.forward{--edge:$forward;--glow:$halo}
.backward{--edge:$hot;--glow:$hot;
&.negative{--edge:$negative;--glow:$negative;& .pill{fill:$negative}}}
.overlay *{stroke-width:calc(var(--wide)*var(--large))}
.hover{stroke:$muted;--wide:1.5px}
.select{stroke:$ink;--wide:2px;stroke-dasharray:5 3}
.focus{stroke:$forward;--wide:3px}
.halo{--wide:9px;stroke-opacity:.5;stroke-linejoin:round}
.core{stroke:var(--edge);--wide:2.5px}
.flow.forward{--wide:4.5px}
.halo,.flow{stroke:var(--glow)}
.leader{stroke:var(--glow);--wide:1.5px}
.point{fill:var(--glow)}
.pill+text{fill:$page;font-size:12px}
}
.mg-heat{position:relative;display:inline-block;margin:0;max-width:100%;font-family:$font;color:$ink}
.mg-heat canvas{display:block;max-width:100%;image-rendering:pixelated;border:1px solid $rim;border-radius:3px;
cursor:crosshair}
.mg-heat figcaption{font-size:.8rem;color:$muted;min-height:1.4em;font-variant-numeric:tabular-nums}
.mg-said{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (forced-colors:active){.mg-drawing .select,.mg-drawing .focus{stroke:Highlight}}
@media print{.mg-view{overflow:visible;max-height:none}}
`;

/** Return the CSS of the drawing, with the colours of both themes, for the player's shadow root. */
export const drawingStyle = () =>
  `:host{color-scheme:light;--mg-font:${FONT};${themeVariables("light")}}` +
  `:host([data-mg-theme=dark]){color-scheme:dark;${themeVariables("dark")}}${expandColours(DRAWING_RULES)}`;

/** Expand `$ink` and other palette colours in CSS rules. @param {string} rules */
export const expandColours = (rules) => rules.replace(/\$([a-z-]+)/g, "var(--mg-$1)").replaceAll("\n", "");

/**
 * Detect the page's theme in JupyterLab, Notebook, VS Code, Colab and Sphinx books; null if it has none.
 * @param {{html: Element, body: Element | null}} page
 * @returns {"light" | "dark" | null}
 */
export function detectTheme({ html, body }) {
  const labTheme = body?.getAttribute("data-jp-theme-light");
  if (labTheme !== null && labTheme !== undefined) return labTheme === "false" ? "dark" : "light";
  const classes = body?.classList;
  if (classes?.contains("vscode-light") || classes?.contains("vscode-high-contrast-light")) return "light";
  if (classes?.contains("vscode-dark") || classes?.contains("vscode-high-contrast")) return "dark";
  for (const attribute of [html.getAttribute("data-theme"), html.getAttribute("theme")]) {
    if (attribute === "dark" || attribute === "light") return attribute;
  }
  return null;
}

/**
 * Keep `data-mg-theme` of `root` in sync with the theme of the page or the system.
 * @param {HTMLElement} root
 * @param {() => void} [onChange] called after each change: canvases must be repainted
 * @returns {() => void} stops following
 */
export function followTheme(root, onChange = () => {}) {
  const page = root.ownerDocument;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const theme = detectTheme({ html: page.documentElement, body: page.body }) ?? (system.matches ? "dark" : "light");
    if (root.dataset.mgTheme === theme) return;
    root.dataset.mgTheme = theme;
    onChange();
  };
  const observer = new MutationObserver(apply);
  const attributeFilter = ["data-jp-theme-light", "class", "data-theme", "theme"];
  for (const element of [page.documentElement, page.body])
    observer.observe(element, { attributes: true, attributeFilter });
  system.addEventListener("change", apply);
  apply();
  return () => {
    observer.disconnect();
    system.removeEventListener("change", apply);
  };
}

/**
 * Return the current colours at an element, for drawing on a canvas.
 * @param {Element} element
 * @returns {Record<string, string>}
 */
export function currentColours(element) {
  const style = getComputedStyle(element);
  const names = Object.keys(PALETTE.light);
  return Object.fromEntries(
    names.map((name) => [name, style.getPropertyValue(`--mg-${name}`).trim() || PALETTE.light[name]]),
  );
}
