import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pythonOf } from '../../scripts/client/python.mjs';
import { typescriptOf } from '../../scripts/client/typescript.mjs';
import { root } from './source-files.ts';

test('the operations of the clients are those of the document (npm run client writes them)', () => {
  const document: unknown = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8'));
  const written = (path: string) => readFileSync(join(root, 'clients', path), 'utf8');
  expect(written('typescript/src/operations.ts')).toBe(typescriptOf(document));
  expect(written('python/atoll_client/operations.py')).toBe(pythonOf(document));
});
