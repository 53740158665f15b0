// Runs pieces of JavaScript one after the other in one context. Arguments: the descriptors of code and of replies.
'use strict';
const fs = require('node:fs');
const { createInterface } = require('node:readline');
const { inspect } = require('node:util');
const vm = require('node:vm');
const { createRequire } = require('node:module');

const [codeFd, replyFd] = process.argv.slice(2).map(Number);
const sandboxRequire = createRequire(`${process.cwd()}/`);
Object.assign(globalThis, { require: sandboxRequire });

// An interrupt ends what runs, as in any shell; the kernel starts another process.
process.on('uncaughtException', error => fs.writeSync(2, `${error && error.stack ? error.stack : error}\n`));

/**
 * Declarations at the top stay for later pieces, and `await` works there: such code runs in an async function whose
 * declarations were turned into assignments to the global object.
 */
async function run(source) {
  const code = withoutTypes(source);
  if (!/\bawait\b/.test(code)) return vm.runInThisContext(persistent(code), { filename: 'cell.js', importModuleDynamically: load });
  const lines = persistent(code, true).split('\n');
  const last = lines.findLastIndex(line => line.trim() !== '' && !/^\s*(\/\/|[}\])])/.test(line));
  const returns = lines.map((line, index) => (index === last && isExpression(lines.slice(index).join('\n')) ? `return ${line.trimStart()}` : line));
  return vm.runInThisContext(`(async () => {\n${returns.join('\n')}\n})()`, { filename: 'cell.js', importModuleDynamically: load });
}

/** What is no JavaScript may be TypeScript: then it runs without its types, unchecked. */
function withoutTypes(code) {
  if (parses(code)) return code;
  try {
    const { code: plain } = require('sucrase').transform(code, { transforms: ['typescript'], disableESTransforms: true });
    return parses(plain) ? plain : code;
  } catch {
    return code;
  }
}

function parses(code) {
  try {
    new vm.Script(`(async () => {${code}\n})`);
    return true;
  } catch {
    return false;
  }
}

const load = specifier => import(/^[./]/.test(specifier) ? require('node:path').resolve(specifier) : specifier);

function isExpression(text) {
  try {
    new vm.Script(`(async () => (${text.trim().replace(/;$/, '')}))`);
    return true;
  } catch {
    return false;
  }
}

/** `const` and `let` of a piece could not be declared again by the next one; `var` can, and stays. */
function persistent(code, insideFunction = false) {
  return code
    .replace(/^(const|let|var)\s+(?=[A-Za-z_$][\w$]*\s*=)/gm, insideFunction ? 'globalThis.' : 'var ')
    .replace(/^(const|let|var)\s+(?=[[{])/gm, insideFunction ? '' : 'var ')
    .replace(/^(async\s+)?function\s+([A-Za-z_$][\w$]*)/gm, (match, _, name) => (insideFunction ? `globalThis.${name} = ${match}` : match))
    .replace(/^class\s+([A-Za-z_$][\w$]*)/gm, (match, name) => (insideFunction ? `globalThis.${name} = ${match}` : `var ${name} = ${match}`));
}

createInterface({ input: fs.createReadStream(null, { fd: codeFd }) }).on('line', line => void answer(JSON.parse(line)));

async function answer({ code, marker }) {
  let reply;
  try {
    const value = await run(code);
    reply = value === undefined ? {} : { data: dataOf(value) };
  } catch (error) {
    const isError = error !== null && typeof error === 'object' && 'message' in error;
    reply = { error: { name: isError ? error.name : 'Error', message: isError ? error.message : inspect(error), stack: [isError && error.stack ? error.stack : inspect(error)] } };
  }
  await Promise.all([process.stdout, process.stderr].map(stream => new Promise(resolve => stream.write(marker, resolve))));
  fs.writeSync(replyFd, `${JSON.stringify(reply)}\n`);
}

function dataOf(value) {
  const data = { 'text/plain': inspect(value) };
  if (value !== null && typeof value === 'object') {
    try {
      data['application/json'] = JSON.parse(JSON.stringify(value));
    } catch {
      // It has no form as JSON.
    }
  }
  return data;
}
