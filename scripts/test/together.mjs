// `node together.mjs FILE …` runs the tests of these files in one process, one file after another, so that they can
// share what takes long to start.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

for (const file of process.argv.slice(2)) await import(pathToFileURL(resolve(file)).href);
