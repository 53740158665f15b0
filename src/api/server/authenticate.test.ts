import { afterAll, expect, test } from 'bun:test';
import { createAccessToken } from '../credential/rules/access-tokens.ts';
import { createApiKey } from '../credential/rules/api-keys.ts';
import { CredentialCache } from '../credential/rules/cache.ts';
import { RateLimiter } from '../credential/rules/rate-limit.ts';
import { openStore } from '../database/database.ts';
import type { Auth } from '../http/auth.ts';
import type { Route } from '../http/route.ts';
import { sessionCookie } from '../session/cookie.ts';
import { beginSession } from '../session/rules/begin.ts';
import { createTeam } from '../team/rules/provision-team.ts';
import { addMember, createUser } from '../team/rules/provision-user.ts';
import { authenticateRequest, isStillLetIn } from './authenticate.ts';

const store = await openStore({ kind: 'sqlite', path: ':memory:' });
const { db } = store;
afterAll(() => store[Symbol.asyncDispose]());
const clock = () => 1e15;
const deps = () => ({
  ...{ adminToken: 'admin', metricsToken: 'metrics', clock, credentials: new CredentialCache(store, clock), db },
  ...{ domain: 'example.org', seed: new Uint8Array(32).fill(1), wrongCredentials: new RateLimiter(() => 0) },
});
const own = deps();
const team = await createTeam(own, { name: 'team', slug: 'team' });
const ada = await createUser(own, { email: null, name: 'Ada' });
await addMember(own, team, ada, 'developer');
const key = (await createApiKey(own, team, 'k')).text;
const token = (await createAccessToken(own, ada, 'k')).text;
const { value: session } = await beginSession(
  own,
  { userId: ada.userId, isOperator: false },
  { address: '', userAgent: '' },
);

const routeOf = (auth: Auth, more: Partial<Route> = {}) =>
  ({ auth, method: 'GET', role: 'viewer', proof: false, ...more }) as Route;
const callerOf = (auth: Auth, headers: Record<string, string>, more: Partial<Route> = {}, address = '') =>
  authenticateRequest(own, routeOf(auth, more), new Headers(headers), address);

test('a route for everybody has no caller', async () => {
  expect(await callerOf('none', { 'x-api-key': 'wrong' })).toBeNull();
  expect(await isStillLetIn(own, routeOf('none'), new Headers())).toBe(true);
});

test('each credential is read from its header', async () => {
  expect(await callerOf('team', { 'x-api-key': key })).toMatchObject({ kind: 'team', actor: { kind: 'apiKey' } });
  expect(await callerOf('admin', { 'x-admin-token': 'admin' })).toMatchObject({ kind: 'admin' });
  expect(await callerOf('scraper', { authorization: 'Bearer metrics' })).toMatchObject({ kind: 'scraper' });
  for (const authorization of [`Bearer ${token}`, `bearer   ${token} `])
    expect(await callerOf('user', { authorization })).toMatchObject({ kind: 'user', user: { userId: ada.userId } });
  expect(await callerOf('member', { authorization: `Bearer ${token}`, 'x-team-id': team.teamId })).toMatchObject({
    kind: 'team',
    actor: { kind: 'user' },
  });
  for (const authorization of [`Basic ${token}`, `Bearer ${token} more`, `x Bearer ${token}`, token])
    await expect(callerOf('user', { authorization })).rejects.toMatchObject({ code: 'unauthenticated' });
});

test('a session is accepted only from a page of the dashboard', async () => {
  const cookie = `other=1; ${sessionCookie}=${session}`;
  expect(await callerOf('session', { cookie, 'sec-fetch-site': 'same-origin' })).toMatchObject({ kind: 'session' });
  for (const site of ['same-site', 'cross-site', 'none'])
    await expect(callerOf('session', { cookie, 'sec-fetch-site': site })).rejects.toMatchObject({
      code: 'unauthenticated',
    });
  await expect(callerOf('session', { cookie })).rejects.toMatchObject({ code: 'unauthenticated' });
});

test('a known caller may lack the role', async () => {
  const headers = { authorization: `Bearer ${token}`, 'x-team-id': team.teamId };
  expect(await callerOf('team', headers, { role: 'developer' })).toMatchObject({ role: 'developer' });
  await expect(callerOf('team', headers, { role: 'admin' })).rejects.toMatchObject({ code: 'forbidden' });
});

test('a blocked team may read and remove', async () => {
  const { teamId } = await createTeam(own, { name: 'blocked', slug: 'blocked' });
  const blocked = (await createApiKey(own, { ...team, teamId }, 'k')).text;
  await db.updateTable('teams').set({ blocked: 1 }).where('team_id', '=', teamId).execute();
  own.credentials.clear();
  const headers = { 'x-api-key': blocked };
  for (const method of ['GET', 'DELETE'] as const)
    expect(await callerOf('team', headers, { method })).toMatchObject({ kind: 'team' });
  for (const method of ['POST', 'PUT', 'PATCH'] as const)
    await expect(callerOf('team', headers, { method })).rejects.toMatchObject({ code: 'forbidden' });
  expect(await isStillLetIn(own, routeOf('team', { method: 'POST' }), new Headers(headers))).toBe(true);
});

for (const [name, headers] of Object.entries({
  'a key': { 'x-api-key': 'wrong' },
  'a token': { authorization: 'Bearer wrong' },
  "the operator's token": { 'x-admin-token': 'wrong' },
  'a session': { cookie: `${sessionCookie}=${'0'.repeat(64)}`, 'sec-fetch-site': 'same-origin' },
}))
  test(`who guesses ${name} is held up, from that address alone`, async () => {
    const guess = (address: string, sent: Record<string, string>) =>
      callerOf('team', sent, {}, address).then(
        () => 'let in',
        (error: { code: string }) => error.code,
      );
    const address = `192.0.2.${name.length}`;
    for (let time = 0; time < 50; time++) expect(await guess(address, headers)).toBe('unauthenticated');
    expect(await guess(address, headers)).toBe('rate_limited');
    // A request without credentials is not a guess, and a correct one is never held up.
    expect(await guess(address, {})).toBe('unauthenticated');
    expect(await guess(address, { 'x-api-key': key })).toBe('let in');
    expect(await guess('192.0.2.200', headers)).toBe('unauthenticated');
  });

test('an admitted caller is checked again, and a failing database decides nothing', async () => {
  const headers = new Headers({ authorization: `Bearer ${token}`, 'x-team-id': team.teamId });
  expect(await isStillLetIn(own, routeOf('team'), headers)).toBe(true);
  expect(await isStillLetIn(own, routeOf('team', { role: 'admin' }), headers)).toBe(false);
  expect(await isStillLetIn(own, routeOf('team'), new Headers({ 'x-api-key': 'gone' }))).toBe(false);
  const failing = { ...deps(), credentials: { apiKey: () => Promise.reject(new Error('away')) } as never };
  await expect(isStillLetIn(failing, routeOf('team'), new Headers({ 'x-api-key': key }))).rejects.toThrow('away');
});
