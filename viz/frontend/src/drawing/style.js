/**
 * The CSS of the drawing, and which colours hold: the page's theme decides, or else the reader's system.
 *
 * The player lives in a shadow root, where selectors cannot look outside. So `followTheme` reads the page and says what
 * it found in an attribute of the player's root, `data-mg-theme`.
 */
import { FONT, PALETTE } from "./palette.js";

/** @param {"light" | "dark"} theme */
const variables = (theme) =>
  Object.entries(PALETTE[theme])
    .map(([name, colour]) => `--mg-${name}:${colour}`)
    .join(";");

const SHAPES = `
.mg-view{position:relative;overflow:auto;overscroll-behavior:contain;max-height:var(--mg-view-height,70vh);
background:$page;border-radius:8px;touch-action:pan-x pan-y;cursor:grab;font-family:$font;scrollbar-width:thin;
scrollbar-color:$line transparent}
.mg-view.mg-dragged{cursor:grabbing;user-select:none}
.mg-view:focus-visible{outline:3px solid $forward;outline-offset:-3px}
.mg-stage{position:relative;margin:0 auto;contain:strict}
.mg-stage>svg{position:absolute;left:0;top:0;width:100%;height:100%;isolation:isolate;pointer-events:none}
.mg-stage>canvas{position:absolute}
.mg-drawing{font-size:12.5px;font-variant-numeric:tabular-nums;user-select:none;overflow:clip;
& text{white-space:pre;fill:$ink}
.name{font-size:13px;font-weight:700}
.unnamed{font-weight:400;font-style:italic}
.rule{font-weight:400}
.cap{font-size:10.5px}
.sum{font-size:10.5px;font-weight:700;fill:$backward}
.num{text-anchor:end}
.mid{text-anchor:middle}
.fw{fill:$forward}
.bw{fill:$backward}
.dim{fill:$muted}
.final .grad{font-weight:700}
.wait .grad,.blocked .grad{fill:$muted}
.thumb{image-rendering:pixelated}
.nan{fill:none;stroke:$ink;stroke-width:1}
.rim{fill:none;stroke:$rim}
.item,.frame{pointer-events:auto}
.item{outline:none}
.box{fill:$card}
.line{fill:none;stroke:$line;stroke-width:1.25}
.head{fill:$op}
.wash{fill:$wash}
.leaf .line{stroke:$leaf}
.leaf .head{fill:$leaf}
.leaf .name,.leaf .name tspan{fill:$on-leaf}
.output .head{fill:$output}
.output .name,.output .name tspan{fill:$on-output}
.block .name{fill:$ink}
.block .name .bw{fill:$backward}
.output .line,.ring{stroke:$output}
.ring{fill:none;stroke-width:1.25}
.still .line{stroke-dasharray:4 3}
.pale .box,.pale .head{fill:$page}
.pale .wash{fill:none}
.pale .line,.pale .ring{stroke:$rim}
.pale text,.pale .name,.pale .name tspan{fill:$muted}
.pale .thumb{display:none}
.broken .line{stroke:$alarm;stroke-width:2.5;stroke-dasharray:7 4}
.bad .line{stroke:$alarm;stroke-width:2.5}
.badge{fill:$alarm}
.badge+text{fill:$on-alarm;font-weight:700;text-anchor:middle}
.raised{fill:$alarm;font-weight:600}
.stack{fill:$card;stroke:$line;stroke-width:1}
.block .head{fill:$rim}
.way{fill:$rim}
.done-fw{fill:$forward}
.done-bw{fill:$backward}
.hull{fill:$ink;fill-opacity:.025;stroke:$line;stroke-width:1;stroke-dasharray:1 3;stroke-linecap:round}
.bar{fill:$rim;fill-opacity:.55}
.frame{cursor:pointer;outline:none}
.frame:hover .bar{fill-opacity:1}
.frame text{font-size:11.5px;font-weight:600}
.sign{fill:none;stroke:$muted;stroke-width:1.5}
.wire .line{stroke-width:1.5}
.tip{fill:$line}
.many .line{stroke-width:2.5}
.none .line{stroke-dasharray:2 4}
.done .line{stroke:$heat;stroke-width:2.5}
.done .tip{fill:$heat}
.future .line{stroke:$rim}
.future .tip{fill:$rim}
.label{font-size:11px;text-anchor:end;fill:$backward;paint-order:stroke;stroke:$page;stroke-width:7;
stroke-linejoin:round}
.select,.focus,.hover,.halo,.core,.flow,.leader{fill:none}
.hover{stroke:$muted;stroke-width:calc(1.5px*var(--large))}
.select{stroke:$ink;stroke-width:calc(2px*var(--large));stroke-dasharray:5 3}
.focus{stroke:$forward;stroke-width:calc(3px*var(--large))}
.halo{stroke-width:calc(9px*var(--large));stroke-opacity:.5;stroke-linejoin:round}
.core{stroke-width:calc(2.5px*var(--large))}
.forward .halo,.flow.forward{stroke:$halo}
.forward .core{stroke:$forward}
.backward .halo,.flow.backward,.backward .core{stroke:$hot}
.flow{stroke-width:calc(4.5px*var(--large))}
.leader{stroke:$backward;stroke-width:calc(1.5px*var(--large))}
.point{fill:$hot}
.pill{fill:$backward}
.pill+text{fill:$page;font-size:12px;font-weight:600;text-anchor:middle}
.pill,.pill+text{transform:scale(var(--large))}
.overlay{--large:1;pointer-events:none}
}
.mg-heat{position:relative;display:inline-block;margin:0;max-width:100%;font-family:$font;color:$ink}
.mg-heat canvas{display:block;max-width:100%;image-rendering:pixelated;border:1px solid $rim;border-radius:3px;
cursor:crosshair}
.mg-heat canvas:focus-visible{outline:3px solid $forward;outline-offset:2px}
.mg-heat figcaption{font-size:.8rem;color:$muted;min-height:1.4em;font-variant-numeric:tabular-nums}
.mg-said{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.mg-overview{position:relative;background:$page;border:1px solid $rim;border-radius:6px;overflow:hidden}
.mg-overview canvas{display:block;cursor:pointer}
.mg-overview canvas:focus-visible{outline:3px solid $forward;outline-offset:-3px}
@media (forced-colors:active){.mg-drawing .select,.mg-drawing .focus{stroke:Highlight}}
@media print{.mg-view{overflow:visible;max-height:none}}
`;

/** The CSS of the drawing, and the colours of both themes, for the shadow root of the player. */
export const drawingStyle = () =>
  `:host{color-scheme:light;--mg-font:${FONT};${variables("light")}}` +
  `:host([data-mg-theme=dark]){color-scheme:dark;${variables("dark")}}${cssOf(SHAPES)}`;

/** The CSS of rules in which `$ink` stands for a colour of the palette. @param {string} rules */
export const cssOf = (rules) => rules.replace(/\$([a-z-]+)/g, "var(--mg-$1)").replaceAll("\n", "");

/**
 * What the page says about its theme: JupyterLab and Notebook, VS Code, Colab, books made with Sphinx; null if nothing.
 * @param {{html: Element, body: Element | null}} page
 * @returns {"light" | "dark" | null}
 */
export function themeOf({ html, body }) {
  const lab = body?.getAttribute("data-jp-theme-light");
  if (lab !== null && lab !== undefined) return lab === "false" ? "dark" : "light";
  const classes = body?.classList;
  if (classes?.contains("vscode-light") || classes?.contains("vscode-high-contrast-light")) return "light";
  if (classes?.contains("vscode-dark") || classes?.contains("vscode-high-contrast")) return "dark";
  for (const said of [html.getAttribute("data-theme"), html.getAttribute("theme")]) {
    if (said === "dark" || said === "light") return said;
  }
  return null;
}

/**
 * Keeps `data-mg-theme` of `root` equal to the theme that holds, now and whenever the page or the system changes it.
 * @param {HTMLElement} root
 * @param {() => void} [changed] called after each change: what is drawn on a canvas must be drawn again
 * @returns {() => void} ends it
 */
export function followTheme(root, changed = () => {}) {
  const page = root.ownerDocument;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const theme = themeOf({ html: page.documentElement, body: page.body }) ?? (system.matches ? "dark" : "light");
    if (root.dataset.mgTheme === theme) return;
    root.dataset.mgTheme = theme;
    changed();
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
 * The colours that hold at an element, for what is drawn on a canvas.
 * @param {Element} element
 * @returns {Record<string, string>}
 */
export function coloursAt(element) {
  const style = getComputedStyle(element);
  const names = Object.keys(PALETTE.light);
  return Object.fromEntries(
    names.map((name) => [name, style.getPropertyValue(`--mg-${name}`).trim() || PALETTE.light[name]]),
  );
}
