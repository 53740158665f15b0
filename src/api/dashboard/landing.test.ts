import { expect, test } from 'bun:test';
import { landingPage } from './landing.ts';

const ask = (path: string, headers: Record<string, string>, init: RequestInit = {}) =>
  landingPage(new Request(`http://atoll.example.org:3000${path}`, { headers, ...init }), {
    dashboard: true,
    docs: true,
  });
const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

test('people get a page that leads on, under the policy of the dashboard', async () => {
  const answer = ask('/', { ...browser, 'x-forwarded-proto': 'https' });
  const text = (await answer?.text()) ?? '';
  expect(text).toContain('href="/dashboard"');
  expect(text).toContain('href="/docs/"');
  expect(text).toContain('E2B_API_URL=https://atoll.example.org:3000 ');
  const [, nonce = 'none'] = /<style nonce="(\w+)">/.exec(text) ?? [];
  expect(answer?.headers.get('content-security-policy')).toContain(`'nonce-${nonce}'`);
  const bare = landingPage(new Request('http://a/', { headers: browser }), { dashboard: false, docs: false });
  expect(await bare?.text()).not.toMatch(/\/dashboard|\/docs/);
});

test('clients that accept anything get the same in plain text', async () => {
  for (const headers of [{ accept: '*/*' }, { accept: 'text/plain' }]) {
    const answer = ask('/', headers);
    expect(answer?.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const text = (await answer?.text()) ?? '';
    for (const path of ['/dashboard', '/docs/', '/openapi.json', '/health'])
      expect(text).toContain(`http://atoll.example.org:3000${path}`);
    expect(text).toContain('E2B_API_URL=http://atoll.example.org:3000 ');
  }
  const bare = landingPage(new Request('http://a/', { headers: { accept: '*/*' } }), { dashboard: false, docs: false });
  expect(await bare?.text()).not.toMatch(/\/dashboard|\/docs/);
});

test('programs that want JSON or say nothing, other paths and other methods get the API’s answer', () => {
  expect(ask('/', {})).toBeNull();
  expect(ask('/', { accept: 'application/json' })).toBeNull();
  expect(ask('/', { accept: 'application/json, text/plain, */*' })).toBeNull();
  expect(ask('/', { accept: 'image/png' })).toBeNull();
  expect(ask('/sandboxes', browser)).toBeNull();
  expect(ask('/sandboxes', {})).toBeNull();
  expect(ask('/', browser, { method: 'POST' })).toBeNull();
});
