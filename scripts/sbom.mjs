// `npm run sbom [-- FILE]`: writes the parts of Atoll, and what it runs on, as a software bill of materials (CycloneDX
// 1.5, JSON), by default to dist/sbom.json. It leaves out parts that are not fetched or installed yet, so run it after
// set-up. Equal contents make equal bytes.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { billOfMaterials } from './setup/bill-of-materials.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const output = resolve(process.argv[2] ?? join(root, 'dist/sbom.json'));
const bill = billOfMaterials(root);
mkdirSync(dirname(output), { recursive: true });
writeFileSync(output, `${JSON.stringify(bill, null, 2)}\n`);
process.stdout.write(`${bill.components.length} components: ${output}\n`);
