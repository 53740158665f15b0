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

test('programs, other paths and other methods get what they got before', () => {
  expect(ask('/', {})).toBeNull();
  expect(ask('/', { accept: 'application/json' })).toBeNull();
  expect(ask('/sandboxes', browser)).toBeNull();
  expect(ask('/', browser, { method: 'POST' })).toBeNull();
});
