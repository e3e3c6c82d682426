/**
 * Collect the property names that the build may mangle. A name must *not* be mangled if it
 *
 *  - is a property of a type that the language or the browser declares, or is declared there and used on a value of
 *    unknown type;
 *  - is part of the module's public interface (`mount`, `startAll`, the widget);
 *  - belongs to an object with an index signature, or to one assigned to such a type: a trace, attributes;
 *  - is looked up by a string, as in `ICONS[name]`, or is quoted.
 *
 * Types come from TypeScript's checker.
 */

import { fileURLToPath } from "node:url";

import ts from "typescript";

const CONFIG = fileURLToPath(new URL("tsconfig.json", import.meta.url));
const SOURCES = fileURLToPath(new URL("src/", import.meta.url));

/** Return the names that may be mangled, sorted. */
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

/** Collect the property names used in a source file, and mark those that must not be mangled. */
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
    keep(names, typeOf(node.expression)); // a type cast
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

/** Record the use of property `name` on a value of `type`. */
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

/** Whether a type is a string. */
function isText(type) {
  return type.isUnion() ? type.types.some(isText) : Boolean(type.flags & ts.TypeFlags.StringLike);
}

/** Whether a type has a string index signature. */
function isOpen({ checker }, type) {
  const all = type.isUnion() ? type.types : [type];
  return all.some((one) => checker.getIndexInfosOfType(one).some((info) => isText(info.keyType)));
}

/** Mark all properties of a type as not to be mangled. */
function keep({ checker, foreign }, type) {
  for (const one of type.isUnionOrIntersection() ? type.types : [type]) {
    for (const property of checker.getPropertiesOfType(one)) foreign.add(property.name);
  }
}

/**
 * Mark everything reachable from a type as not to be mangled: its properties, and its functions' parameters and
 * results.
 */
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
