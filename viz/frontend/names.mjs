/**
 * Which names of properties are the player's own, so that the build may shorten them. A name is *not*, if anywhere it
 *
 *  - is used of something that the language or the browser declares, or (where it is declared there at all) of
 *    something of a type that is not known;
 *  - is part of what the module takes and gives (`mount`, `startAll`, the widget);
 *  - belongs to an object with arbitrary keys, or to one given where such a one is wanted: a trace, attributes;
 *  - is looked up as a text, as in `ICONS[name]`, or stands in quotes.
 *
 * TypeScript knows, from the types of the sources.
 */

import { fileURLToPath } from "node:url";

import ts from "typescript";

const CONFIG = fileURLToPath(new URL("tsconfig.json", import.meta.url));
const SOURCES = fileURLToPath(new URL("src/", import.meta.url));

/** The player's own names, sorted. */
export function ownNames() {
  const { config } = ts.readConfigFile(CONFIG, ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, `${SOURCES}..`);
  const program = ts.createProgram(fileNames, options);
  const names = { used: new Set(), foreign: new Set(), unsure: new Set(), checker: program.getTypeChecker() };
  const declared = new Set();
  for (const file of program.getSourceFiles()) {
    if (file.fileName.startsWith(SOURCES)) visitSource(names, file);
    else visitLibrary(declared, file);
    if (!file.fileName.endsWith("/main.js")) continue;
    const exported = names.checker.getExportsOfModule(names.checker.getSymbolAtLocation(file));
    for (const symbol of exported) keepInterface(names, names.checker.getTypeOfSymbol(symbol), new Set());
  }
  const isForeign = (name) => names.foreign.has(name) || (names.unsure.has(name) && declared.has(name));
  return [...names.used].filter((name) => !isForeign(name) && /^\w{2,}$/.test(name)).sort();
}

function visitLibrary(declared, node) {
  if (node.name && ts.isIdentifier(node.name)) declared.add(node.name.text);
  ts.forEachChild(node, (child) => visitLibrary(declared, child));
}

/** Notes the names in a source, and which of them are foreign. */
function visitSource(names, node) {
  const { foreign, checker } = names;
  const typeOf = (of) => checker.getTypeAtLocation(of);
  if (ts.isPropertyAccessExpression(node)) {
    use(names, node.name.text, typeOf(node.expression));
  } else if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent) && !node.dotDotDotToken) {
    const name = node.propertyName ?? node.name;
    if (ts.isIdentifier(name)) use(names, name.text, typeOf(node.parent));
    else keep(names, typeOf(node.parent));
  } else if (ts.isObjectLiteralElementLike(node) && node.name) {
    if (ts.isStringLiteral(node.name)) foreign.add(node.name.text);
    else if (ts.isIdentifier(node.name)) use(names, node.name.text, checker.getContextualType(node.parent) ?? typeOf(node.parent));
  } else if (ts.isElementAccessExpression(node) && isText(typeOf(node.argumentExpression))) {
    keep(names, typeOf(node.expression));
  } else if (ts.isParenthesizedExpression(node) && isOpen(names, typeOf(node))) {
    keep(names, typeOf(node.expression)); // a cast
  } else if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.InKeyword) {
    keep(names, typeOf(node.right));
  } else if (ts.isCallExpression(node) && node.expression.getText() === "Object.keys") {
    keep(names, typeOf(node.arguments[0]));
  }
  if (ts.isObjectLiteralExpression(node) || ts.isCallExpression(node.parent ?? node)) {
    const wanted = ts.isExpression(node) && checker.getContextualType(node);
    if (wanted && isOpen(names, wanted)) keep(names, typeOf(node));
  }
  ts.forEachChild(node, (child) => visitSource(names, child));
}

/** Notes a name that is used of a type. */
function use(names, name, type) {
  names.used.add(name);
  if (isOpen(names, type)) return names.foreign.add(name);
  for (const one of type.isUnionOrIntersection() ? type.types : [type]) {
    const symbol = names.checker.getPropertyOfType(names.checker.getApparentType(one), name);
    if (symbol?.declarations?.some((declaration) => !isOurs(declaration))) names.foreign.add(name);
    if (one.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown | ts.TypeFlags.TypeParameter)) names.unsure.add(name);
  }
}

/** Whether a declaration is in the sources. */
const isOurs = (declaration) => declaration.getSourceFile().fileName.startsWith(SOURCES);

/** Whether a type is a text. */
function isText(type) {
  return type.isUnion() ? type.types.some(isText) : Boolean(type.flags & ts.TypeFlags.StringLike);
}

/** Whether a type has arbitrary keys. */
function isOpen({ checker }, type) {
  const all = type.isUnion() ? type.types : [type];
  return all.some((one) => checker.getIndexInfosOfType(one).some((info) => isText(info.keyType)));
}

/** The properties of a type stay. */
function keep({ checker, foreign }, type) {
  for (const one of type.isUnionOrIntersection() ? type.types : [type]) {
    for (const property of checker.getPropertiesOfType(one)) foreign.add(property.name);
  }
}

/** All that a type leads to stays: its properties, and what its functions take and give. */
function keepInterface(names, type, seen) {
  if (seen.has(type)) return;
  seen.add(type);
  const more = (next) => keepInterface(names, next, seen);
  if (type.isUnionOrIntersection()) type.types.forEach(more);
  for (const property of names.checker.getPropertiesOfType(type)) {
    if (!property.declarations?.some(isOurs)) continue;
    names.foreign.add(property.name);
    more(names.checker.getTypeOfSymbol(property));
  }
  for (const call of type.getCallSignatures()) {
    for (const parameter of call.parameters) more(names.checker.getTypeOfSymbol(parameter));
    more(call.getReturnType());
  }
}
