import { afterAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadDocs } from './docs.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-docs-'));
afterAll(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, 'api'));
writeFileSync(join(folder, 'index.html'), '<h1>Index</h1>');
writeFileSync(join(folder, 'api/createSandbox.html'), '<h1>Create</h1>');

const docs = loadDocs(folder);
const get = (path: string, init?: RequestInit) => docs?.(new Request(`http://localhost:3000${path}`, init)) ?? null;

test('pages come unchanged, compressed where that is accepted, and only once to those that have them', async () => {
  const index = get('/docs/');
  expect(await index?.text()).toBe('<h1>Index</h1>');
  expect(index?.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(index?.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(get('/docs')?.headers.get('location')).toBe('/docs/');
  const page = get('/docs/api/createSandbox.html?a=b', { headers: { 'accept-encoding': 'br, gzip' } });
  expect(page?.headers.get('content-encoding')).toBe('gzip');
  const tag = page?.headers.get('etag') ?? '';
  expect(get('/docs/api/createSandbox.html', { headers: { 'if-none-match': tag } })?.status).toBe(304);
});

test('nothing else is read, other paths are not the documentation’s, and it accepts no other methods', () => {
  expect(get('/docs/none.html')?.status).toBe(404);
  expect(get('/docs/..%2findex.html')?.status).toBe(404);
  expect(get('/docsx')).toBeNull();
  expect(get('/docs/', { method: 'POST' })?.status).toBe(405);
  expect(loadDocs(join(folder, 'none'))).toBeNull();
});
