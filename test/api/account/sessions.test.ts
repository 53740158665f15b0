import { expect, test } from 'bun:test';
import { createSignInLink } from '../../../src/api/session/rules/links.ts';
import type { LifecycleEvent } from '../../../src/protocol/api/event.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform, call } from '../platform.ts';
import { beginSession } from '../session-callers.ts';
import { messagesOf } from '../support/stream-messages.ts';

const page = { 'sec-fetch-site': 'same-origin', host: 'localhost:3000' };
const cookieOf = (headers: Headers) => /^(__Host-atoll=[0-9a-f]{64});/.exec(headers.get('set-cookie') ?? '')?.[1] ?? '';

onEachDatabase(database => {
  test(`a link signs in once, and what it began can be listed and revoked`, async () => {
    await using platform = await Platform.start({ database });
    const { user } = await platform.user(platform.team);
    const { path } = await createSignInLink(platform.api.parts, user.userId);
    const code = path.split('#')[1];
    const ask = (method: string, path: string, headers: Record<string, string>, body?: unknown) =>
      call(platform.socketPath, method, path, body, { ...page, ...headers });

    const first = await ask('POST', '/session', {}, { code });
    expect(first).toMatchObject({ status: 201, body: { user: { id: user.userId }, operator: false } });
    expect(first.headers.get('set-cookie')).toContain('Path=/; Max-Age=604800; Secure; HttpOnly; SameSite=Lax');
    expect(await ask('POST', '/session', {}, { code })).toMatchObject({ status: 401 });

    const cookie = cookieOf(first.headers);
    const team = { cookie, 'x-team-id': platform.team.teamId };
    expect(await ask('GET', '/session', { cookie })).toMatchObject({
      status: 200,
      body: { user: { id: user.userId } },
    });
    expect((await ask('POST', '/v2/sandboxes', team, { templateID: 'base' })).status).toBe(201);
    expect((await ask('GET', '/nodes', { cookie })).status).toBe(401);

    const second = await createSignInLink(platform.api.parts, user.userId);
    const other = cookieOf((await ask('POST', '/session', {}, { code: second.path.split('#')[1] })).headers);
    const sessions = (await ask('GET', '/sessions', { cookie })).body as { sessionID: string; current: boolean }[];
    expect(sessions.map(({ current }) => current).toSorted()).toEqual([false, true]);
    const foreign = sessions.find(({ current }) => !current)?.sessionID;
    expect((await ask('DELETE', `/sessions/${foreign}`, { cookie })).status).toBe(204);
    expect((await ask('GET', '/session', { cookie: other })).status).toBe(401);
    const out = await ask('DELETE', '/session', { cookie });
    expect(out).toMatchObject({ status: 204 });
    expect(out.headers.get('set-cookie')).toContain('Max-Age=0');
    expect((await ask('GET', '/session', { cookie })).status).toBe(401);
  });
});

test("the operator's link lets in where the operator's token does, for any team", async () => {
  await using platform = await Platform.start();
  const code = (await createSignInLink(platform.api.parts, null)).path.split('#')[1];
  const signedIn = await call(platform.socketPath, 'POST', '/session', { code }, page);
  expect(signedIn).toMatchObject({ status: 201, body: { user: null, operator: true, teams: [] } });
  const cookie = cookieOf(signedIn.headers);
  expect((await call(platform.socketPath, 'GET', '/nodes', undefined, { ...page, cookie })).status).toBe(200);
  const team = { ...page, cookie, 'x-team-id': platform.team.teamId };
  expect((await call(platform.socketPath, 'GET', '/v2/sandboxes', undefined, team)).status).toBe(200);
});

test('an access token signs its user in; what is not good is answered alike', async () => {
  await using platform = await Platform.start();
  const { user, token } = await platform.user(platform.team);
  const signIn = (body: unknown) => call(platform.socketPath, 'POST', '/session', body, page);
  expect(await signIn({ accessToken: token })).toMatchObject({ status: 201, body: { user: { id: user.userId } } });
  const refusals = [{ accessToken: platform.key }, { code: '0'.repeat(64) }, { code: 'x' }, { accessToken: 'x' }];
  const answers = await Promise.all(refusals.map(signIn));
  expect(new Set(answers.map(({ status, body }) => JSON.stringify({ status, body }))).size).toBe(1);
  expect(answers[0]?.status).toBe(401);
});

test('nobody signs in from a page of another origin, nor over plain HTTP from afar', async () => {
  await using platform = await Platform.start();
  const { token } = await platform.user(platform.team);
  const signIn = (headers: Record<string, string>) =>
    call(platform.socketPath, 'POST', '/session', { accessToken: token }, headers);
  for (const site of ['same-site', 'cross-site', 'none'])
    expect((await signIn({ ...page, 'sec-fetch-site': site })).status).toBe(403);
  expect((await signIn({ host: 'localhost:3000' })).status).toBe(403);
  const afar = await signIn({ ...page, host: '192.0.2.1:3000' });
  expect(afar).toMatchObject({ status: 403, body: { message: expect.stringContaining('ATOLL_TLS_PORT') } });
  expect((await signIn({ ...page, host: '192.0.2.1', 'x-forwarded-proto': 'https' })).status).toBe(201);
});

test('attempts to sign in are counted by address', async () => {
  await using platform = await Platform.start();
  const statuses = new Set<number>();
  for (let attempt = 0; attempt < 12; attempt++)
    statuses.add((await call(platform.socketPath, 'POST', '/session', { code: 'x' }, page)).status);
  expect([...statuses]).toEqual([401, 429]);
});

test('who makes up addresses behind a proxy, or has an IPv6 network of them, has no more attempts to sign in', async () => {
  await using platform = await Platform.start();
  const statusesOf = async (addressOf: (attempt: number) => string) => {
    const statuses = new Set<number>();
    for (let attempt = 0; attempt < 12; attempt++) {
      const headers = { ...page, 'x-forwarded-for': addressOf(attempt) };
      statuses.add((await call(platform.socketPath, 'POST', '/session', { code: 'x' }, headers)).status);
    }
    return [...statuses];
  };
  expect(await statusesOf(attempt => `192.0.2.${attempt}, 203.0.113.9, 10.0.0.1`)).toEqual([401, 429]);
  expect(await statusesOf(attempt => `2001:db8:1:2::${attempt}`)).toEqual([401, 429]);
  expect(await statusesOf(attempt => `203.0.113.${20 + attempt}, 10.0.0.1`)).toEqual([401]);
});

test('an answer to a session lets no other origin read it; others do', async () => {
  await using platform = await Platform.start();
  const cors = async (headers: Record<string, string>) =>
    (await call(platform.socketPath, 'GET', '/health', undefined, headers)).headers.get('access-control-allow-origin');
  expect(await cors({ cookie: `__Host-atoll=${'0'.repeat(64)}` })).toBeNull();
  expect(await cors({})).toBe('*');
});

test('the stream tells what happens, and goes on where one left off', async () => {
  await using platform = await Platform.start();
  const before = await platform.createSandbox();
  const stop = new AbortController();
  const response = await fetch('http://api/events/stream', {
    unix: platform.socketPath,
    headers: { 'x-api-key': platform.key },
    signal: stop.signal,
  });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const messages = messagesOf(response);
  expect((await messages.next()).value).toContain('event: ready');
  const { sandboxID } = await platform.createSandbox();
  const told = String((await messages.next()).value);
  expect(JSON.parse(/^data: (.*)$/m.exec(told)?.[1] ?? '') as LifecycleEvent).toMatchObject({
    type: 'sandbox.lifecycle.created',
    sandboxId: sandboxID,
  });
  stop.abort();
  const again = await platform.call('GET', '/events/stream?after=0&seconds=1');
  expect(String(again.body)).toContain(`"sandboxId":"${before.sandboxID}"`);
  expect(String(again.body)).toContain(`"sandboxId":"${sandboxID}"`);
});

onEachDatabase(database => {
  test('a stream ends when its session is revoked, and with it when its key is deleted', async () => {
    await using platform = await Platform.start({ database });
    const { user } = await platform.user(platform.team);
    const { sessionId, cookie } = await beginSession(platform, user.userId);
    const follow = async (headers: Record<string, string>) =>
      messagesOf(await fetch('http://api/events/stream', { unix: platform.socketPath, headers }));
    const ofSession = await follow({ ...page, cookie, 'x-team-id': platform.team.teamId });
    const ofKey = await follow({ 'x-api-key': platform.key });
    expect((await ofSession.next()).value).toContain('event: ready');
    expect((await ofKey.next()).value).toContain('event: ready');

    // Directly in the database, as another process would do; SQLite has no other process.
    await platform.store.db.deleteFrom('sessions').where('session_id', '=', sessionId).execute();
    await platform.store.db.deleteFrom('api_keys').where('team_id', '=', platform.team.teamId).execute();
    if (database.name === 'SQLite') platform.api.parts.credentials.clear();
    expect((await ofSession.next()).done).toBe(true);
    expect((await ofKey.next()).done).toBe(true);
  });
});
