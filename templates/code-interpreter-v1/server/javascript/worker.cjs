// Runs cells of JavaScript one after the other in one context. Arguments: the descriptors of requests and of replies, a line
// each: `<code, base64> <marker>`, answered by JSON (see worker_kernel.py). The marker ends what a cell writes to both streams.
'use strict';
const fs = require('node:fs');
const inspector = require('node:inspector');
const { createRequire } = require('node:module');
const { Socket } = require('node:net');
const path = require('node:path');
const { createInterface } = require('node:readline');
const { pathToFileURL } = require('node:url');
const { inspect } = require('node:util');
const vm = require('node:vm');
const { Names, prepare } = require('./cell.cjs');

const [requestFd, replyFd] = process.argv.slice(2).map(Number);
// Packages are found from the context's folder, not from here.
const cellRequire = createRequire(path.join(process.cwd(), 'cell.js'));
const session = new inspector.Session();
session.connect();
const names = new Names();
let interrupt;

// What cells use of ours, under a name that is in nobody's way.
const own = '__atoll__';
Object.defineProperty(globalThis, own, { value: { import: load, value: undefined } });
Object.assign(globalThis, { require: cellRequire });

process.on('uncaughtException', report);
process.on('unhandledRejection', report);
// Code that waits is given up; code that computes is stopped by `breakOnSigint`.
process.on('SIGINT', () => interrupt?.());

function report(error) {
  fs.writeSync(2, `${error?.stack ?? inspect(error)}\n`);
}

/** `import`, as from a file in the context's folder: of a path, a package installed there, or a module of Node.js. */
function load(specifier, options) {
  if (typeof specifier !== 'string') return import(specifier, options);
  const name = specifier.startsWith('npm:') ? specifier.slice('npm:'.length) : specifier;
  if (/^\.{0,2}\//.test(name)) return import(pathToFileURL(path.resolve(name)), options);
  try {
    const found = cellRequire.resolve(name);
    return import(path.isAbsolute(found) ? pathToFileURL(found) : found, options);
  } catch {
    return import(name, options);
  }
}

const post = (method, parameters) =>
  new Promise((resolve, reject) =>
    session.post(method, parameters, (error, answer) => (error ? reject(new Error(error.message)) : resolve(answer))),
  );

/** The value of a cell's last expression, awaited. Throws what the cell throws. */
async function run(source) {
  const { code, declared } = prepare(source, names, `globalThis.${own}.import`);
  const evaluation = { expression: code, replMode: true, awaitPromise: true, objectGroup: 'cell', silent: true };
  const interrupted = new Promise((_, reject) => {
    interrupt = () => reject(Object.assign(new Error('The execution was interrupted'), { name: 'Interrupted' }));
  });
  try {
    globalThis[own].start = () => post('Runtime.evaluate', evaluation);
    const answer = vm.runInThisContext(`globalThis.${own}.start()`, { breakOnSigint: true });
    const { result, exceptionDetails } = await Promise.race([answer, interrupted]);
    for (const kind of ['lexical', 'variable']) for (const name of declared[kind]) names[kind].add(name);
    if (exceptionDetails) throw await valueOf(exceptionDetails.exception ?? result);
    return await Promise.race([valueOf(result), interrupted]);
  } finally {
    interrupt = undefined;
    await post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
  }
}

/** The value itself of what V8 describes. */
async function valueOf({ objectId, value, unserializableValue }) {
  const argument = objectId ? { objectId } : unserializableValue ? { unserializableValue } : { value };
  await post('Runtime.callFunctionOn', {
    functionDeclaration: `function (value) { globalThis.${own}.value = { value }; }`,
    arguments: [argument],
    executionContextId: 1,
    silent: true,
  });
  const { value: found } = globalThis[own].value;
  globalThis[own].value = undefined;
  return found;
}

async function answer(line) {
  const [code, marker] = line.split(' ');
  let reply;
  try {
    const value = await run(Buffer.from(code, 'base64').toString());
    reply = value === undefined ? {} : { data: dataOf(value) };
  } catch (error) {
    reply = { error: described(error) };
  }
  const end = Buffer.from(marker, 'base64');
  await Promise.all([process.stdout, process.stderr].map(stream => new Promise(done => stream.write(end, done))));
  fs.writeSync(replyFd, `${JSON.stringify(reply)}\n`);
}

function described(error) {
  const isError = error !== null && typeof error === 'object' && 'message' in error;
  return {
    name: isError ? String(error.name) : 'Error',
    message: isError ? String(error.message) : inspect(error),
    stack: isError && error.stack ? withoutOurs(String(error.stack)) : inspect(error),
  };
}

/** A stack without the frames below the cell's own. */
function withoutOurs(stack) {
  const lines = stack.split('\n');
  const end = lines.findIndex(line => /^ +at .*(node:inspector|worker\.cjs):\d/.test(line));
  return (end < 0 ? lines : lines.slice(0, end)).join('\n');
}

function dataOf(value) {
  const data = { 'text/plain': typeof value === 'string' ? value : inspect(value) };
  if (value !== null && typeof value === 'object') {
    try {
      const json = JSON.stringify(value);
      if (json !== undefined) data['application/json'] = JSON.parse(json);
    } catch {
      // It has no form as JSON.
    }
  }
  return data;
}

let turn = Promise.resolve();
// A socket is polled. A file's read would wait in a thread, and `process.exit()` of a cell for that thread, so without end.
createInterface({ input: new Socket({ fd: requestFd, readable: true, writable: false }) })
  .on('line', line => (turn = turn.then(() => answer(line))))
  // The kernel is gone.
  .on('close', () => process.exit());
