/** Print `file:line: N lines` for each function in the sources, or in a given folder, that is longer than 60 lines. */

import { readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import ts from "typescript";

const MOST = 60;
const folder = process.argv[2] ? pathToFileURL(`${process.argv[2]}/`) : new URL("src/", import.meta.url);

for (const name of readdirSync(folder, { recursive: true }).filter((one) => one.endsWith(".js"))) {
  const file = ts.createSourceFile(name, readFileSync(new URL(name, folder), "utf8"), ts.ScriptTarget.ES2022, true);
  const lineAt = (/** @type {number} */ place) => file.getLineAndCharacterOfPosition(place).line + 1;
  const visit = (/** @type {ts.Node} */ node) => {
    if (ts.isFunctionLike(node) && !ts.isJSDocNode(node)) {
      const first = lineAt(node.getStart());
      const lines = lineAt(node.end) - first + 1;
      if (lines > MOST) console.log(`${name}:${first}: ${lines} lines`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
}
