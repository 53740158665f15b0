// What a cell's source becomes before V8 runs it in its REPL mode, which knows top-level `await`, and lets `let`, `const` and
// classes be declared again by the next cell. The rest is done here, by a parser: everything else in the source stays as it is.
'use strict';
const { parse } = require('acorn');
const { base, full, simple } = require('acorn-walk');
const { transform } = require('sucrase');

const syntax = {
  ecmaVersion: 'latest',
  sourceType: 'script',
  allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true,
  allowHashBang: true,
};

/** Names that earlier cells have declared, by the kind of binding that they have for V8. */
class Names {
  lexical = new Set();
  variable = new Set();
}

/**
 * The source to run, with the same lines, and the names that it declares; the source itself where it can't be parsed, so that
 * V8 says what is wrong. `importer` is the expression that stands for `import` in `import(…)`.
 */
function prepare(source, names, importer) {
  const parsed = parseCell(source);
  if (!parsed) return { code: source, declared: new Names() };
  const { text, tree } = parsed;
  const edits = [];
  const declared = new Names();
  for (const statement of tree.body) {
    if (statement.type === 'ImportDeclaration') editImport(statement, text, importer, edits, declared);
    else editDeclaration(statement, names, edits, declared);
  }
  // `var` in blocks and loops is the cell's too; what functions declare is not.
  simple(tree, { VariableDeclaration: node => addVariables(node, declared) }, { ...base, Function() {} });
  full(tree, node => {
    if (node.type === 'ImportExpression') edits.push({ start: node.start, end: node.start + 'import'.length, text: importer });
  });
  return { code: applied(text, edits), declared };
}

/** JavaScript as it is; what is no JavaScript may be TypeScript, and runs without its types. An object literal is no block. */
function parseCell(source) {
  const literal = /^\s*\{/.test(source) && treeOf(`(${source.replace(/;\s*$/, '')}\n)`);
  if (literal) return { text: `(${source.replace(/;\s*$/, '')}\n)`, tree: literal };
  const tree = treeOf(source);
  if (tree) return { text: source, tree };
  const text = withoutTypes(source);
  const plain = text !== undefined && treeOf(text);
  return plain ? { text, tree: plain } : undefined;
}

function treeOf(text) {
  try {
    return parse(text, syntax);
  } catch {
    return undefined;
  }
}

function withoutTypes(source) {
  try {
    return transform(source, { transforms: ['typescript'], disableESTransforms: true, keepUnusedImports: true }).code;
  } catch {
    return undefined;
  }
}

/** `import a, { b as c } from 'x'` becomes `const { default: a, b: c } = await import('x')`. */
function editImport(statement, text, importer, edits, declared) {
  const load = `await ${importer}(${text.slice(statement.source.start, statement.source.end)})`;
  const lines = '\n'.repeat(text.slice(statement.start, statement.end).split('\n').length - 1);
  const nameOf = node => (node.type === 'Literal' ? JSON.stringify(node.value) : node.name);
  let whole;
  const members = [];
  for (const specifier of statement.specifiers) {
    const local = specifier.local.name;
    declared.lexical.add(local);
    if (specifier.type === 'ImportNamespaceSpecifier') whole = local;
    else if (specifier.type === 'ImportDefaultSpecifier') members.push(`default: ${local}`);
    else members.push(`${nameOf(specifier.imported)}: ${local}`);
  }
  const parts = [];
  if (whole) parts.push(`const ${whole} = ${load};`);
  if (members.length > 0) parts.push(`const { ${members.join(', ')} } = ${whole ?? load};`);
  if (statement.specifiers.length === 0) parts.push(`${load};`);
  edits.push({ start: statement.start, end: statement.end, text: parts.join(' ') + lines });
}

/**
 * V8 lets a name keep its kind of binding only. Where a cell declares one of an earlier cell in another way, the declaration
 * takes the older kind: `let f` after `function f` becomes `var f`, and `function f` after `let f` becomes `let f = function f`.
 */
function editDeclaration(statement, names, edits, declared) {
  const { type, kind } = statement;
  if (type === 'VariableDeclaration') {
    const own = statement.declarations.flatMap(({ id }) => namesOf(id));
    const isVariable = kind === 'var';
    const turns = own.some(name => (isVariable ? names.lexical : names.variable).has(name));
    if (turns) edits.push({ start: statement.start, end: statement.start + kind.length, text: isVariable ? 'let' : 'var' });
    for (const name of own) (isVariable === turns ? declared.lexical : declared.variable).add(name);
  } else if (type === 'ClassDeclaration') {
    const { name } = statement.id;
    const turns = names.variable.has(name);
    if (turns) edits.push({ start: statement.start, end: statement.start, text: `var ${name} = ` });
    (turns ? declared.variable : declared.lexical).add(name);
  } else if (type === 'FunctionDeclaration') {
    const { name } = statement.id;
    const turns = names.lexical.has(name);
    if (turns) edits.push({ start: statement.start, end: statement.start, text: `let ${name} = ` });
    (turns ? declared.lexical : declared.variable).add(name);
  }
}

function addVariables({ kind, declarations }, declared) {
  const own = kind === 'var' ? declarations.flatMap(({ id }) => namesOf(id)) : [];
  for (const name of own) if (!declared.lexical.has(name)) declared.variable.add(name);
}

function namesOf(pattern) {
  switch (pattern?.type) {
    case 'Identifier':
      return [pattern.name];
    case 'ObjectPattern':
      return pattern.properties.flatMap(property => namesOf(property.value ?? property.argument));
    case 'ArrayPattern':
      return pattern.elements.flatMap(namesOf);
    case 'AssignmentPattern':
      return namesOf(pattern.left);
    case 'RestElement':
      return namesOf(pattern.argument);
    default:
      return [];
  }
}

function applied(text, edits) {
  let at = 0;
  const parts = [];
  for (const edit of edits.sort((a, b) => a.start - b.start)) {
    parts.push(text.slice(at, edit.start), edit.text);
    at = edit.end;
  }
  return parts.join('') + text.slice(at);
}

module.exports = { Names, prepare };
