import { expect, test } from 'bun:test';
import { steadyClock } from '../../../src/base/clock.ts';
import { sha256Hex } from '../../../src/base/crypto/secret.ts';
import { createUser } from '../../../src/api/team/rules/provision-user.ts';
import type { OidcFile } from '../../../src/protocol/oidc.ts';
import { signInThere, startIdentityProvider } from '../../support/identity-provider/identity-provider.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform, call } from '../platform.ts';

const page = { 'sec-fetch-site': 'same-origin', host: 'localhost:3000' };
const redirectUri = 'http://localhost:3000/dashboard/signin';
const secret = 'of the page';
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
