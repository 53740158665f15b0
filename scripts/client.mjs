// `npm run client`: generates the clients' parts from the API's document, and packs the JavaScript client.
import { mkdirSync, readFileSync, rmSync, cpSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pythonOf } from './client/python.mjs';
import { typescriptOf } from './client/typescript.mjs';
import { run } from './setup/run.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'clients/typescript');
const built = join(root, 'dist/client');

const document = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8'));
writeFileSync(join(source, 'src/operations.ts'), typescriptOf(document));
writeFileSync(join(root, 'clients/python/atoll_client/operations.py'), pythonOf(document));
rmSync(built, { recursive: true, force: true });
mkdirSync(built, { recursive: true });
await run([join(root, 'node_modules/.bin/tsc'), '-p', source, '--outDir', join(built, 'dist')]);
for (const file of ['package.json', 'README.md']) cpSync(join(source, file), join(built, file));
cpSync(join(root, 'LICENSE'), join(built, 'LICENSE'));
await run(['npm', 'pack', '--pack-destination', dirname(built)], { cwd: built });
