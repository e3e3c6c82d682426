/**
 * The CSS of the drawing, and which colours hold: the page's theme decides, or else the reader's system.
 *
 * The player lives in a shadow root, where selectors cannot look outside. So `followTheme` reads the page and says what
 * it found in an attribute of the player's root, `data-mg-theme`. Without script the system decides.
 */
import { FONT, PALETTE } from "./palette.js";

/** @param {"light" | "dark"} theme */
const variables = (theme) =>
  Object.entries(PALETTE[theme])
    .map(([name, colour]) => `--mg-${name}:${colour}`)
    .join(";");

const SHAPES = `
.mg-view{position:relative;overflow:auto;overscroll-behavior:contain;max-height:var(--mg-view-height,70vh);
background:var(--mg-page);border-radius:8px;touch-action:pan-x pan-y;cursor:grab;font-family:var(--mg-font);
scrollbar-width:thin;scrollbar-color:var(--mg-line) transparent}
.mg-view.mg-dragged{cursor:grabbing;user-select:none}
.mg-view:focus-visible{outline:3px solid var(--mg-forward);outline-offset:-3px}
.mg-stage{position:relative;margin:0 auto}
.mg-stage>svg{position:absolute;left:0;top:0;width:100%;height:100%;isolation:isolate;pointer-events:none}
.mg-stage>canvas{display:block}
.mg-stage>canvas{position:sticky;left:0;top:0}
.mg-drawing{font-size:12.5px;font-variant-numeric:tabular-nums;user-select:none;overflow:clip}
.mg-drawing text{white-space:pre;fill:var(--mg-ink)}
.mg-drawing .name{font-size:13px;font-weight:700}
.mg-drawing .unnamed{font-weight:400;font-style:italic}
.mg-drawing .rule{font-weight:400}
.mg-drawing .cap{font-size:10.5px}
.mg-drawing .sum{font-size:10.5px;font-weight:700;fill:var(--mg-backward)}
.mg-drawing .num{text-anchor:end}
.mg-drawing .mid{text-anchor:middle}
.mg-drawing .fw{fill:var(--mg-forward)}
.mg-drawing .bw{fill:var(--mg-backward)}
.mg-drawing .dim{fill:var(--mg-muted)}
.mg-drawing .final .grad{font-weight:700}
.mg-drawing .wait .grad,.mg-drawing .blocked .grad{fill:var(--mg-muted)}
.mg-drawing .thumb{image-rendering:pixelated}
.mg-drawing .nan{fill:none;stroke:var(--mg-ink);stroke-width:1}
.mg-drawing .rim{fill:none;stroke:var(--mg-rim)}
.mg-drawing .item,.mg-drawing .frame{pointer-events:auto}
.mg-drawing .item{cursor:pointer;outline:none}
.mg-drawing .box{fill:var(--mg-card);stroke:var(--mg-line);stroke-width:1.25}
.mg-drawing .line{fill:none;stroke:var(--mg-line);stroke-width:1.25}
.mg-drawing .head{fill:var(--mg-op)}
.mg-drawing .wash{fill:var(--mg-wash)}
.mg-drawing .leaf .line,.mg-drawing .leaf .box{stroke:var(--mg-leaf)}
.mg-drawing .leaf .head{fill:var(--mg-leaf)}
.mg-drawing .leaf .name,.mg-drawing .leaf .name tspan{fill:var(--mg-on-leaf)}
.mg-drawing .output .head{fill:var(--mg-output)}
.mg-drawing .output .name,.mg-drawing .output .name tspan{fill:var(--mg-on-output)}
.mg-drawing .output .line,.mg-drawing .ring{stroke:var(--mg-output)}
.mg-drawing .ring{fill:none;stroke-width:1.25}
.mg-drawing .still .line{stroke-dasharray:4 3}
.mg-drawing .pale .box{fill:var(--mg-page)}
.mg-drawing .pale .head{fill:var(--mg-page)}
.mg-drawing .pale .wash{fill:none}
.mg-drawing .pale .line,.mg-drawing .pale .ring{stroke:var(--mg-rim)}
.mg-drawing .pale text,.mg-drawing .pale .name,.mg-drawing .pale .name tspan{fill:var(--mg-muted)}
.mg-drawing .pale .thumb{display:none}
.mg-drawing .broken .line{stroke:var(--mg-alarm);stroke-width:2.5;stroke-dasharray:7 4}
.mg-drawing .bad .line{stroke:var(--mg-alarm);stroke-width:2.5}
.mg-drawing .badge{fill:var(--mg-alarm)}
.mg-drawing .badge+text{fill:var(--mg-on-alarm);font-weight:700;text-anchor:middle}
.mg-drawing .raised{fill:var(--mg-alarm);font-weight:600}
.mg-drawing .stack{fill:var(--mg-card);stroke:var(--mg-line);stroke-width:1}
.mg-drawing .block:not(.output) .head{fill:var(--mg-rim)}
.mg-drawing .block .box{fill:var(--mg-card)}
.mg-drawing .way{fill:var(--mg-rim)}
.mg-drawing .done-fw{fill:var(--mg-forward)}
.mg-drawing .done-bw{fill:var(--mg-backward)}
.mg-drawing .hull{fill:var(--mg-ink);fill-opacity:.025;stroke:var(--mg-line);stroke-width:1;stroke-dasharray:1 3;
stroke-linecap:round}
.mg-drawing .bar{fill:var(--mg-rim);fill-opacity:.55}
.mg-drawing .frame{cursor:pointer;outline:none}
.mg-drawing .frame:hover .bar{fill-opacity:1}
.mg-drawing .frame text{font-size:11.5px;font-weight:600}
.mg-drawing .sign{fill:none;stroke:var(--mg-muted);stroke-width:1.5}
.mg-drawing .wire{fill:none;stroke:var(--mg-line);stroke-width:1.5}
.mg-drawing .wire.many{stroke-width:2.5}
.mg-drawing .wire.none{stroke-dasharray:2 4}
.mg-drawing .wire.done{stroke:var(--mg-heat);stroke-width:2.5}
.mg-drawing .wire.future{stroke:var(--mg-rim)}
.mg-drawing .tip{fill:var(--mg-line)}
.mg-drawing .tip.done{fill:var(--mg-heat)}
.mg-drawing .tip.future{fill:var(--mg-rim)}
.mg-drawing .label{font-size:11px;text-anchor:end;fill:var(--mg-backward);paint-order:stroke;stroke:var(--mg-page);
stroke-width:7;stroke-linejoin:round}
.mg-drawing .select,.mg-drawing .focus,.mg-drawing .hover{fill:none;pointer-events:none}
.mg-drawing .hover{stroke:var(--mg-muted);stroke-width:1.5}
.mg-drawing .select{stroke:var(--mg-ink);stroke-width:2;stroke-dasharray:5 3}
.mg-drawing .focus{stroke:var(--mg-forward);stroke-width:3}
.mg-drawing .halo{fill:none;stroke-width:9;stroke-opacity:.5;stroke-linejoin:round}
.mg-drawing .core{fill:none;stroke-width:2.5}
.mg-drawing .forward .halo,.mg-drawing .flow.forward{stroke:var(--mg-halo)}
.mg-drawing .forward .core{stroke:var(--mg-forward)}
.mg-drawing .backward .halo,.mg-drawing .flow.backward,.mg-drawing .backward .core{stroke:var(--mg-hot)}
.mg-drawing .flow{fill:none;stroke-width:4.5;stroke-linecap:butt}
.mg-drawing .point{stroke:none}
.mg-drawing .leader{fill:none;stroke:var(--mg-backward);stroke-width:1.5}
.mg-drawing .forward .point{fill:var(--mg-forward)}
.mg-drawing .backward .point{fill:var(--mg-hot)}
.mg-drawing .pill{fill:var(--mg-backward)}
.mg-drawing .pill+text{fill:var(--mg-page);font-size:12px;font-weight:600;text-anchor:middle}
.mg-drawing .overlay{pointer-events:none}
.mg-heat{position:relative;display:inline-block;margin:0;max-width:100%;font-family:var(--mg-font);color:var(--mg-ink)}
.mg-heat canvas{display:block;max-width:100%;image-rendering:pixelated;border:1px solid var(--mg-rim);border-radius:3px;
cursor:crosshair}
.mg-heat canvas:focus-visible{outline:3px solid var(--mg-forward);outline-offset:2px}
.mg-heat figcaption{font-size:.8rem;color:var(--mg-muted);min-height:1.4em;font-variant-numeric:tabular-nums}
.mg-said{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.mg-overview{position:relative;background:var(--mg-page);border:1px solid var(--mg-rim);border-radius:6px;
overflow:hidden}
.mg-overview canvas{display:block;cursor:pointer}
.mg-overview canvas:focus-visible{outline:3px solid var(--mg-forward);outline-offset:-3px}
@media (forced-colors:active){.mg-drawing .select,.mg-drawing .focus{stroke:Highlight}}
@media print{.mg-view{overflow:visible;max-height:none}}
`;

/**
 * The CSS of the drawing, to be put into the shadow root; `selector` names the player's root there.
 * @param {string} [selector]
 */
export function drawingStyle(selector = ":host") {
  const dark = selector === ":host" ? ':host([data-mg-theme="dark"])' : `${selector}[data-mg-theme="dark"]`;
  const unsaid = selector === ":host" ? ":host(:not([data-mg-theme]))" : `${selector}:not([data-mg-theme])`;
  return (
    `${selector}{color-scheme:light;--mg-font:${FONT};${variables("light")}}` +
    `${dark}{color-scheme:dark;${variables("dark")}}` +
    `@media (prefers-color-scheme:dark){${unsaid}{color-scheme:dark;${variables("dark")}}}` +
    SHAPES.replaceAll("\n", "")
  );
}

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
