/**
 * Writes the player's module: the sources as one small file, which is committed, so that nobody needs node to install.
 *
 *     node build.mjs          writes ../minigrad_viz/static/player.js
 *     node build.mjs FILE     writes FILE
 *     node build.mjs --sizes  says how many bytes each source takes in it
 */

import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { analyzeMetafile, build } from "esbuild";

import { ownNames } from "./names.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const [argument] = process.argv.slice(2);
const sizes = argument === "--sizes";

const { metafile } = await build({
  absWorkingDir: here("."),
  entryPoints: ["src/main.js"],
  outfile: argument && !sizes ? resolve(argument) : here("../minigrad_viz/static/player.js"),
  write: !sizes,
  metafile: true,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  mangleProps: new RegExp(`^(${ownNames().join("|")})$`),
});
if (sizes) console.log(await analyzeMetafile(metafile));
