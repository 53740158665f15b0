import { expect, test } from 'bun:test';
import { controlTokenHeader, type AgentInit } from '../protocol/agent.ts';
import { isPlatform, requireAccess } from './access.ts';
import { allowOrigins, preflight } from './cors.ts';
import type { StateFile } from './durable/state-file.ts';
import { openSettings } from './settings.ts';

/** Successive agents of one sandbox: each reads what the one before has saved. */
function sandbox() {
  let saved: unknown;
  const state = { readSettings: () => saved, saveSettings: (next: unknown) => void (saved = structuredClone(next)) };
  return { agent: () => openSettings(state as unknown as StateFile) };
}

const whole: AgentInit = {
  envVars: { A: '1' },
  accessToken: 'secret',
  defaultUser: 'user',
  defaultWorkdir: '/work',
  hostname: 'name',
  timestamp: '2026-01-01T00:00:00Z',
  memoryBytes: 5,
  cpuCount: 2,
  logOutput: false,
};
const { timestamp: _, ...others } = whole;
const settings = { ...others, timestampMs: Date.parse('2026-01-01T00:00:00Z') };

test('an agent without settings has none, and one that is started again has those that were saved', () => {
  const { agent } = sandbox();
  const first = agent();
  expect(first.current).toBeUndefined();
  expect(first.take(whole)).toBeTrue();
  expect(first.current).toEqual(settings as NonNullable<typeof first.current>);
  expect(agent().current).toEqual(settings as NonNullable<typeof first.current>);
});

test('what the first settings do not say is as in a new sandbox', () => {
  const store = sandbox().agent();
  store.take({});
  expect(store.current).toEqual({
    ...{ envVars: {}, accessToken: null, defaultUser: 'root', defaultWorkdir: '', hostname: '' },
    ...{ timestampMs: 0, memoryBytes: 0, cpuCount: 0, logOutput: true },
  });
});

test('later settings change what they say, and nothing else', () => {
  const { agent } = sandbox();
  const store = agent();
  store.take(whole);
  for (const [init, change] of [
    [{}, {}],
    [{ envVars: { B: '2' } }, { envVars: { B: '2' } }],
    [{ envVars: {} }, { envVars: {} }],
    [{ accessToken: '' }, { accessToken: null }],
    [{ accessToken: 'other' }, { accessToken: 'other' }],
    [{ accessToken: null }, { accessToken: null }],
    [{ defaultUser: '' }, {}],
    [{ defaultUser: 'root' }, { defaultUser: 'root' }],
    [{ defaultWorkdir: '' }, { defaultWorkdir: '' }],
    [
      { logOutput: true, cpuCount: 4 },
      { logOutput: true, cpuCount: 4 },
    ],
  ] as [AgentInit, object][]) {
    const before = store.current;
    expect(store.take(init)).toBeTrue();
    expect(store.current).toEqual({ ...before, ...change } as NonNullable<typeof before>);
  }
});

test('settings that come late change nothing; those of the same time do', () => {
  const store = sandbox().agent();
  store.take(whole);
  expect(store.take({ timestamp: '2025-12-31T23:59:59.999Z', accessToken: '' })).toBeFalse();
  expect(store.current?.accessToken).toBe('secret');
  expect(store.take({ timestamp: '2026-01-01T00:00:00Z', accessToken: 'same time' })).toBeTrue();
  expect(store.current?.accessToken).toBe('same time');
});

const requestWith = (headers: Record<string, string>) => new Request('http://agent/', { headers });

test('a sandbox with a token lets in who has it, and one without lets in everybody', () => {
  const refused = (message: string) =>
    expect.objectContaining({ code: 'unauthenticated', message: expect.stringContaining(message) }) as Error;
  expect(() => requireAccess(requestWith({}), null)).not.toThrow();
  expect(() => requireAccess(requestWith({ 'x-access-token': 'secret' }), 'secret')).not.toThrow();
  expect(() => requireAccess(requestWith({}), 'secret')).toThrow(refused('is missing'));
  expect(() => requireAccess(requestWith({ 'x-access-token': '' }), 'secret')).toThrow(refused('is missing'));
  for (const given of ['secre', 'secret2', 'Secret'])
    expect(() => requireAccess(requestWith({ 'x-access-token': given }), 'secret')).toThrow(refused('is not the one'));
});

test('the platform is who has the control token; an agent that has none knows no platform', () => {
  const given = (token: string) => requestWith({ [controlTokenHeader]: token });
  expect(isPlatform(given('control'), 'control')).toBeTrue();
  for (const request of [given('other'), given(''), requestWith({})])
    expect(isPlatform(request, 'control')).toBeFalse();
  for (const request of [given(''), requestWith({})]) expect(isPlatform(request, '')).toBeFalse();
});

test('pages of any origin may read an answer, and may send the headers that they ask for', () => {
  const asked = allowOrigins(requestWith({ origin: 'https://a.test' }), new Response());
  expect(asked.headers.get('access-control-allow-origin')).toBe('*');
  expect(asked.headers.get('access-control-expose-headers')).toContain('Grpc-Status,');
  expect([...allowOrigins(requestWith({}), new Response()).headers]).toEqual([]);
  const before = preflight(requestWith({ 'access-control-request-headers': 'authorization,x-access-token' }));
  expect([before.status, before.headers.get('access-control-allow-headers')]).toEqual([
    204,
    'authorization,x-access-token',
  ]);
  expect(preflight(requestWith({})).headers.has('access-control-allow-headers')).toBeFalse();
});
