import { afterAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadDashboard } from './files.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-dashboard-'));
afterAll(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, 'assets'));
writeFileSync(join(folder, 'index.html'), '<meta name="nonce" content="__NONCE__">');
writeFileSync(join(folder, 'assets/a.js'), 'a();');
const dashboard = loadDashboard(folder);
const get = (path: string, init?: RequestInit) =>
  dashboard?.(new Request(`http://localhost:3000${path}`, init)) ?? null;

test('every path below /dashboard is the page, with a nonce of its own in page and policy', async () => {
  const [first, second] = [get('/dashboard'), get('/dashboard/sandboxes/i1?tab=logs')];
  const nonces = await Promise.all(
    [first, second].map(async response => {
      const [, nonce = ''] = /content="([0-9a-f]{32})"/.exec((await response?.text()) ?? '') ?? [];
      expect(nonce).not.toBe('');
      const policy = response?.headers.get('content-security-policy') ?? '';
      expect(policy).toContain(`style-src 'self' 'nonce-${nonce}'`);
      expect(policy).toContain("frame-ancestors 'none'");
      expect(response?.headers.get('cache-control')).toBe('no-store');
      return nonce;
    }),
  );
  expect(nonces[0]).not.toBe(nonces[1]);
});

test('assets may be cached for ever, and nothing else is read', async () => {
  const asset = get('/dashboard/assets/a.js', { headers: { 'accept-encoding': 'gzip' } });
  expect(asset?.headers.get('content-encoding')).toBe('gzip');
  expect(asset?.headers.get('cache-control')).toContain('immutable');
  expect(asset?.headers.get('x-content-type-options')).toBe('nosniff');
  expect(await get('/dashboard/assets/a.js')?.text()).toBe('a();');
  expect(get('/dashboard/assets/..%2findex.html')?.status).toBe(404);
  expect(get('/dashboard/assets/none.js')?.status).toBe(404);
});

test('other paths are not its own, and it takes no other methods', () => {
  expect(get('/dashboards')).toBeNull();
  expect(get('/sandboxes')).toBeNull();
  expect(get('/dashboard', { method: 'POST' })?.status).toBe(405);
});
