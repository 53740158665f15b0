import { expect, test } from 'bun:test';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { agentVersion, controlTokenTaken } from '../protocol/agent.ts';
import { createAfterAnswer } from './after-answer.ts';
import { init } from './init-route.ts';
import { openSettings } from './settings.ts';

/** An agent whose files wait for ever, because they would be the host's. `give` sends an init with this body. */
function agentOf() {
  let saved: unknown;
  const tokens: string[] = [];
  const state = {
    readSettings: () => saved,
    saveSettings: (next: unknown) => void (saved = next),
    replaceControlToken: (token: string) => void tokens.push(token),
  };
  const store = openSettings(state as never);
  const later: (() => void)[] = [];
  const agent = {
    ...{ store, settings: () => store.current, log: undefined, spawner: undefined },
    afterAnswer: { ...createAfterAnswer(), later: (work: () => void) => void later.push(work) },
  };
  const give = (body: unknown) => {
    const text = typeof body === 'string' ? body : JSON.stringify({ filesLater: true, ...(body as object) });
    return init(agent as never, new Request('http://agent/init', { method: 'POST', body: text }));
  };
  return { store, tokens, later, give };
}

test('settings are taken, and answered with the version of the agent', async () => {
  const { store, later, give } = agentOf();
  const answer = await give({
    ...{ envVars: { A: '1' }, accessToken: 'token', defaultUser: 'user', defaultWorkdir: '/w', hostname: 'h' },
    ...{ timestamp: '2026-01-01T00:00:00Z', memoryBytes: 5, cpuCount: 0.5, logOutput: false },
  });
  expect([answer.status, answer.headers.get('x-envd-version')]).toEqual([204, agentVersion]);
  expect(store.current).toEqual({
    ...{ envVars: { A: '1' }, accessToken: 'token', defaultUser: 'user', defaultWorkdir: '/w', hostname: 'h' },
    ...{ timestampMs: Date.parse('2026-01-01T00:00:00Z'), memoryBytes: 5, cpuCount: 0.5, logOutput: false },
  });
  expect(later).toHaveLength(1);
});

test('absent settings stay as they were; a token of null opens the sandbox', async () => {
  const { store, give } = agentOf();
  await give({ accessToken: 'token', envVars: { A: '1' }, memoryBytes: 5 });
  await give({ memoryBytes: 0, cpuCount: '2' });
  expect(store.current).toMatchObject({ accessToken: 'token', envVars: { A: '1' }, memoryBytes: 5, cpuCount: 0 });
  await give({ accessToken: null });
  expect(store.current?.accessToken).toBeNull();
});

test('another control token is taken and answered for, but where the settings come late', async () => {
  const { tokens, give } = agentOf();
  const [token, other] = ['ab'.repeat(32), 'cd'.repeat(32)];
  expect((await give({ timestamp: '2026-01-02T00:00:00Z', controlToken: token })).status).toBe(controlTokenTaken);
  expect((await give({ timestamp: '2026-01-01T00:00:00Z', controlToken: other })).status).toBe(204);
  for (const wrong of ['', `${token}\n`, token.slice(1), token.toUpperCase()])
    await expect(give({ controlToken: wrong })).rejects.toThrow('controlToken must match');
  expect(tokens).toEqual([token]);
});

test('settings that come late change nothing, files neither', async () => {
  const { store, later, give } = agentOf();
  await give({ timestamp: '2026-01-02T00:00:00Z', hostname: 'new' });
  expect((await give({ timestamp: '2026-01-01T00:00:00Z', hostname: 'old' })).status).toBe(204);
  expect([store.current?.hostname, later.length]).toEqual(['new', 1]);
});

test('invalid settings are refused as a whole', async () => {
  const { store, give } = agentOf();
  for (const [body, message] of [
    ['[]', 'the body must be an object'],
    ['{', 'not valid JSON'],
    [{ timestamp: 'yesterday' }, 'timestamp must be a time of RFC 3339'],
    [{ envVars: { A: 1 } }, 'envVars.A must be a string'],
    [{ hostname: 1 }, 'hostname must be a string'],
    [{ logOutput: 'yes' }, 'logOutput must be a boolean'],
    [{ caBundle: 'x'.repeat(4 << 20) }, 'longer than 4194304 bytes'],
  ] as const)
    await expect(give(body)).rejects.toThrow(message);
  expect(store.current).toBeUndefined();
  expect((await give({ envVars: { A: 'x'.repeat(4_000_000) } })).status).toBe(204);
});

test('files are written at once, and the host name is process 1’s to tell where it is another', () => {
  const program = `
    import { init } from ${JSON.stringify(join(import.meta.dir, 'init-route.ts'))};
    import { openSettings } from ${JSON.stringify(join(import.meta.dir, 'settings.ts'))};
    import { readFileSync } from 'node:fs';
    import { hostname } from 'node:os';
    const store = openSettings({ readSettings() {}, saveSettings() {} });
    const named = [], log = { warn: (...facts) => console.log(...facts) };
    const spawner = { nameHost: name => named.push(name) };
    const afterAnswer = { later: () => named.push('later') };
    const agent = { store, settings: () => store.current, log, spawner, afterAnswer };
    for (const body of [{ envVars: { E2B_SANDBOX_ID: 'i1' } }, { hostname: hostname() }, { hostname: 'other' }])
      await init(agent, new Request('http://a/', { method: 'POST', body: JSON.stringify(body) }));
    const written = ['/run/e2b/.E2B_SANDBOX_ID', '/etc/hostname'].map(path => readFileSync(path, 'utf8'));
    console.log(JSON.stringify([named, ...written]));`;
  // In a mount namespace of its own, because it writes files that would be the host's here.
  const mounts = 'mount -t tmpfs none /run; mount -t tmpfs none /etc; mkdir -p /run/e2b; exec "$@"';
  const argv = ['unshare', '--mount', 'sh', '-ec', mounts, 'sh', process.execPath, '-e', program];
  const { stdout, stderr } = Bun.spawnSync(argv);
  expect([stdout.toString(), stderr.toString()]).toEqual(['[["other"],"i1","other\\n"]\n', '']);
  expect(hostname()).not.toBe('other');
});
