/**
 * Bundle the player's sources into one minified module, which is committed so that installation needs no Node.
 *
 *     node build.mjs          write ../minigrad_viz/static/player.js
 *     node build.mjs FILE     write FILE
 *     node build.mjs --sizes  print how many bytes each source contributes
 */

import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { analyzeMetafile, build } from "esbuild";
import { minify } from "terser";

import { ownNames } from "./names.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const [argument] = process.argv.slice(2);
const sizes = argument === "--sizes";

const { metafile, outputFiles } = await build({
  absWorkingDir: here("."),
  entryPoints: ["src/main.js"],
  outfile: argument && !sizes ? resolve(argument) : here("../minigrad_viz/static/player.js"),
  write: false,
  metafile: true,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  mangleProps: new RegExp(`^(${ownNames().join("|")})$`),
});
if (sizes) {
  console.log(await analyzeMetafile(metafile));
} else {
  const [{ path, text }] = outputFiles;
  const options = { module: true, ecma: 2020, compress: { passes: 5, keep_fargs: false, pure_getters: true, unsafe_arrows: true }, format: { ecma: 2020 } };
  const { code } = await minify(text, options); // 2% smaller than esbuild's output
  writeFileSync(path, `${code}\n`);
}
