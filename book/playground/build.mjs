/**
 * Bundle the playground and the parts of the player that it uses as one classic script, because Chromium does not load
 * modules from file:// URLs.
 *
 *     node build.mjs FILE
 */

import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

const tools = createRequire(new URL("../../viz/frontend/package.json", import.meta.url));

await tools("esbuild").build({
  entryPoints: [fileURLToPath(new URL("main.js", import.meta.url))],
  outfile: resolve(process.argv[2]),
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  logLevel: "warning",
});
