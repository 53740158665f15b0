// `npm run docs [-- FOLDER]`: builds the documentation as a site of plain files, by default in dist/docs, which an
// installation serves at /docs. Any web server can serve them from any path.
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeDocs } from './setup/docs.mjs';
import { installNpmPackages } from './setup/npm-packages.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const output = resolve(process.argv[2] ?? join(root, 'dist/docs'));
await installNpmPackages(root);
await writeDocs(root, output);
process.stdout.write(`${join(output, 'index.html')}\n`);
