import { expect, test } from 'bun:test';
import { steadyClock } from '../../../src/base/clock.ts';
import { sha256Hex } from '../../../src/base/crypto/secret.ts';
import { createAccessToken } from '../../../src/api/credential/rules/access-tokens.ts';
import { changePassword } from '../../../src/api/session/rules/accounts.ts';
import { createSignInLink } from '../../../src/api/session/rules/links.ts';
import { signIn as signInByProof } from '../../../src/api/session/rules/sign-in.ts';
import { listSessions } from '../../../src/api/session/store/sessions.ts';
import { createInvitation } from '../../../src/api/team/rules/invitations.ts';
import { addMember, createUser } from '../../../src/api/team/rules/provision-user.ts';
import { findUsers, setPassword } from '../../../src/api/team/store/user.ts';
import type { OidcFile } from '../../../src/protocol/oidc.ts';
import { signInThere, startIdentityProvider } from '../../support/identity-provider/identity-provider.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform, call } from '../platform.ts';

const page = { 'sec-fetch-site': 'same-origin', host: 'localhost:3000' };
const redirectUri = 'http://localhost:3000/dashboard/signin';
const secret = 'of the page';
const password = 'correct horse battery';
const people = {
  ada: { name: 'Ada', email: 'Ada@Example.com', email_verified: true },
  bob: { name: 'Bob', email: 'bob@elsewhere.com', email_verified: true },
  eve: { name: 'Eve', email: 'ada@example.com', email_verified: false },
};

const ask = (platform: Platform, path: string, body: unknown, headers: Record<string, string> = page) =>
  call(platform.socketPath, 'POST', path, body, headers);

/** Where the browser of a page with `secret` goes to sign in. */
async function begin(platform: Platform): Promise<string> {
  const answer = await ask(platform, '/session/provider', { binding: sha256Hex(secret) });
  expect(answer.status).toBe(200);
  return (answer.body as { url: string }).url;
}

const finish = (platform: Platform, back: URL, by = secret) =>
  ask(platform, '/session', { provider: { query: back.search.slice(1), secret: by } });

async function signIn(platform: Platform, login: string) {
  return finish(platform, await signInThere(await begin(platform), login, redirectUri));
}

const rules: Pick<OidcFile, 'emailDomains' | 'newcomers'> = {
  emailDomains: ['example.com'],
  newcomers: { team: 'default', role: 'developer' },
};

onEachDatabase(database => {
  test('newcomers of the domain get an account in the team, and are the same the next time', async () => {
    await using provider = await startIdentityProvider(redirectUri, people);
    await using platform = await Platform.start({ database, oidc: { ...provider.file, ...rules } });
    const named = await call(platform.socketPath, 'GET', '/session/provider', undefined, page);
    expect(named).toMatchObject({ status: 200, body: { name: 'Example' } });
    const first = await signIn(platform, 'ada');
    expect(first).toMatchObject({
      status: 201,
      body: {
        user: { name: 'Ada', email: 'ada@example.com', hasPassword: false },
        operator: false,
        teams: [{ slug: 'default', role: 'developer' }],
      },
    });
    expect(first.headers.get('set-cookie')).toContain('__Host-atoll=');
    const again = await signIn(platform, 'ada');
    const userOf = ({ body }: { body: unknown }) => (body as { user: { id: string } }).user.id;
    expect(userOf(again)).toBe(userOf(first));
  });
});

test('a verified address of the domain joins its account; no other does', async () => {
  await using provider = await startIdentityProvider(redirectUri, people);
  await using platform = await Platform.start({ oidc: { ...provider.file, emailDomains: ['example.com'] } });
  const user = await createUser(platform.api.parts, { email: 'ada@example.com', name: 'Ada' });
  expect(await signIn(platform, 'eve')).toMatchObject({
    status: 403,
    body: { message: expect.stringContaining('no account here') },
  });
  expect(await signIn(platform, 'bob')).toMatchObject({ status: 403 });
  expect(await signIn(platform, 'ada')).toMatchObject({ status: 201, body: { user: { id: user.userId } } });
});

/** Eve's account with Ada's address, made by an invitation, and the ways in which Eve can sign in. */
async function preempt(platform: Platform) {
  const { parts } = platform.api;
  const { path } = await createInvitation(parts, platform.team, 'admin', '');
  const account = { invitation: path.split('#')[1], name: 'Eve', email: 'ada@example.com', password };
  const made = await ask(platform, '/session/invited', account);
  const { user } = made.body as { user: { id: string } };
  const cookie = made.headers.get('set-cookie')?.split(';')[0] ?? '';
  const asEve = { ...page, cookie };
  const created = await ask(platform, '/access-tokens', { name: 'of Eve' }, asEve);
  const token = { authorization: `Bearer ${(created.body as { token: string }).token}` };
  const [listed] = (await call(platform.socketPath, 'GET', '/teams', undefined, token)).body as { apiKey: string }[];
  const link = (await createSignInLink(parts, user.id)).path.split('#')[1];
  return { userId: user.id, asEve, token, key: { 'x-api-key': listed?.apiKey ?? '' }, link };
}

onEachDatabase(database => {
  test('whoever made an account with an address of somebody else has no way into it once that one comes', async () => {
    await using provider = await startIdentityProvider(redirectUri, people);
    await using platform = await Platform.start({ database, oidc: { ...provider.file, ...rules } });
    const eve = await preempt(platform);
    const get = async (path: string, headers: Record<string, string>) =>
      (await call(platform.socketPath, 'GET', path, undefined, headers)).status;
    const statuses = async () => [
      await get('/session', eve.asEve),
      await get('/templates', eve.token),
      await get('/v2/sandboxes', eve.key),
    ];
    expect(await statuses()).toEqual([200, 200, 200]);
    expect(await signIn(platform, 'ada')).toMatchObject({
      status: 201,
      body: { user: { id: eve.userId, hasPassword: false } },
    });
    expect(await statuses()).toEqual([401, 401, 401]);
    expect((await ask(platform, '/session', { email: 'ada@example.com', password })).status).toBe(401);
    expect((await ask(platform, '/session', { code: eve.link })).status).toBe(401);
  });
});

test('a request that is under way when its session ends makes nothing that stays', async () => {
  await using provider = await startIdentityProvider(redirectUri, people);
  await using platform = await Platform.start({ oidc: { ...provider.file, ...rules } });
  const eve = await preempt(platform);
  const { parts } = platform.api;
  const user = (await findUsers(parts.db, [eve.userId])).get(eve.userId);
  const [session] = await listSessions(parts.db, eve.userId);
  if (!user || !session) throw new Error('Eve has an account and a session');
  expect((await signIn(platform, 'ada')).status).toBe(201);
  const refused = expect.objectContaining({ code: 'unauthenticated' });
  const from = { address: '', userAgent: '' };
  const held = { kind: 'session', digest: session.digest } as const;
  await expect(createAccessToken(parts, user, 'late', { held })).rejects.toEqual(refused);
  await expect(changePassword(parts, user, session, password, from)).rejects.toEqual(refused);
});

test('a password that is taken away while it is tried signs nobody in', async () => {
  await using provider = await startIdentityProvider(redirectUri, people);
  await using platform = await Platform.start({ oidc: { ...provider.file, ...rules } });
  const eve = await preempt(platform);
  const { parts } = platform.api;
  const passwords = {
    ...parts.passwords,
    async verify(text: string, hash: string | null) {
      const isRight = await parts.passwords.verify(text, hash);
      await setPassword(parts.db, eve.userId, null);
      return isRight;
    },
  };
  const proof = { email: 'ada@example.com', password };
  await expect(signInByProof({ ...parts, passwords }, proof, { address: '', userAgent: '' })).rejects.toMatchObject({
    code: 'unauthenticated',
  });
});

test('who got an account from the operator keeps his tokens when he first signs in at the provider', async () => {
  await using provider = await startIdentityProvider(redirectUri, people);
  await using platform = await Platform.start({ oidc: { ...provider.file, ...rules } });
  const { parts } = platform.api;
  const user = await createUser(parts, { email: 'ada@example.com', name: 'Ada' });
  await addMember(parts, platform.team, user);
  const { text } = await createAccessToken(parts, user, 'of a program');
  expect(await signIn(platform, 'ada')).toMatchObject({ status: 201, body: { user: { id: user.userId } } });
  const headers = { authorization: `Bearer ${text}` };
  expect((await call(platform.socketPath, 'GET', '/templates', undefined, headers)).status).toBe(200);
});

test('an answer is taken once, from the page that began it, and for a while', async () => {
  await using provider = await startIdentityProvider(redirectUri, people);
  let lateMs = 0;
  const clock = steadyClock(Date.now, () => performance.now() + lateMs);
  await using platform = await Platform.start({ oidc: { ...provider.file, ...rules }, clock });
  const url = await begin(platform);
  const back = await signInThere(url, 'ada', redirectUri);
  expect(await finish(platform, back, 'of another page')).toMatchObject({ status: 401 });
  const forged = new URL(back);
  const state = back.searchParams.get('state') ?? '';
  forged.searchParams.set('state', `${state.slice(0, 40)}${state[40] === 'x' ? 'y' : 'x'}${state.slice(41)}`);
  expect(await finish(platform, forged)).toMatchObject({ status: 401 });
  const mixedUp = new URL(back);
  mixedUp.searchParams.set('iss', 'https://other.example.com');
  expect(await finish(platform, mixedUp)).toMatchObject({ status: 401 });
  expect(await finish(platform, back)).toMatchObject({ status: 201 });
  expect(await finish(platform, back)).toMatchObject({ status: 401 });
  const late = await signInThere(await begin(platform), 'ada', redirectUri);
  lateMs = 11 * 60_000;
  expect(await finish(platform, late)).toMatchObject({
    status: 401,
    body: { message: expect.stringContaining('too long ago') },
  });
});

test('what the provider refuses is told; without a provider nobody signs in at one', async () => {
  await using provider = await startIdentityProvider(redirectUri, people);
  await using platform = await Platform.start({ oidc: { ...provider.file, ...rules } });
  const state = new URL(await begin(platform)).searchParams.get('state') ?? '';
  const refused = new URL(
    `${redirectUri}?${new URLSearchParams({ error: 'access_denied', state, iss: provider.issuer })}`,
  );
  expect(await finish(platform, refused)).toMatchObject({
    status: 401,
    body: { message: expect.stringContaining('access_denied') },
  });
  await using exchanged = await Platform.start({ oidc: { ...provider.file, ...rules, clientSecret: 'of before' } });
  expect(await signIn(exchanged, 'ada')).toMatchObject({
    status: 503,
    body: { message: expect.stringContaining('ATOLL_OIDC_FILE') },
  });
  expect((await ask(platform, '/session/provider', { binding: 'x' })).status).toBe(400);
  expect(
    (await ask(platform, '/session/provider', { binding: sha256Hex('x') }, { host: 'localhost:3000' })).status,
  ).toBe(403);

  await using plain = await Platform.start();
  expect(await call(plain.socketPath, 'GET', '/session/provider', undefined, page)).toMatchObject({
    body: { name: null },
  });
  expect(await ask(plain, '/session/provider', { binding: sha256Hex(secret) })).toMatchObject({ status: 404 });
  await using away = await Platform.start({ oidc: { ...provider.file, issuer: 'http://127.0.0.1:9' } });
  expect(await ask(away, '/session/provider', { binding: sha256Hex(secret) })).toMatchObject({ status: 503 });
});
