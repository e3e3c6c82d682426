import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { PALETTE } from "../src/drawing/palette.js";
import { shellStyle } from "../src/panels/shellstyle.js";
import { drawingStyle, detectTheme } from "../src/drawing/style.js";

/** @param {Record<string, string>} attributes @returns {any} */
const element = (attributes) => ({
  getAttribute: (/** @type {string} */ name) => attributes[name] ?? null,
  classList: { contains: (/** @type {string} */ name) => (attributes.class ?? "").split(" ").includes(name) },
});
/** @param {Record<string, string>} html @param {Record<string, string>} [body] */
const theme = (html, body = {}) => detectTheme({ html: element(html), body: element(body) });

test("the page's theme takes precedence", () => {
  assert.equal(theme({}, { "data-jp-theme-light": "false" }), "dark");
  assert.equal(theme({}, { "data-jp-theme-light": "true", class: "vscode-dark" }), "light");
  assert.equal(theme({}, { class: "a vscode-dark" }), "dark");
  assert.equal(theme({}, { class: "vscode-high-contrast vscode-high-contrast-light" }), "light");
  assert.equal(theme({}, { class: "vscode-high-contrast" }), "dark");
  assert.equal(theme({ "data-theme": "dark" }), "dark");
  assert.equal(theme({ theme: "dark" }), "dark");
  assert.equal(theme({ "data-theme": "auto" }), null);
});

test("both palettes have the same names, and no other colour is used", () => {
  assert.deepEqual(Object.keys(PALETTE.light), Object.keys(PALETTE.dark));
  const known = new Set([...Object.keys(PALETTE.light), "font", "view-height"]);
  const source = new URL("../src/", import.meta.url);
  const files = readdirSync(source, { recursive: true }).filter((name) => String(name).endsWith(".js"));
  const css = files.map((name) => readFileSync(new URL(String(name), source), "utf8"));
  for (const [, name] of (css.join("") + drawingStyle() + shellStyle()).matchAll(/var\(--mg-([\w-]+)/g)) assert.ok(known.has(name), name);
});

test("both themes define colours in the shadow root", () => {
  assert.match(drawingStyle(), /^:host\{color-scheme:light;.*--mg-page:#fbfcfd/);
  assert.match(drawingStyle(), /:host\(\[data-mg-theme=dark\]\)\{color-scheme:dark/);
});
