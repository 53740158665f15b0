import { afterAll, expect, test } from 'bun:test';
import { createAccessToken } from '../../credential/rules/access-tokens.ts';
import { CredentialCache } from '../../credential/rules/cache.ts';
import { RateLimiter } from '../../credential/rules/rate-limit.ts';
import { openStore } from '../../database/database.ts';
import { createUser } from '../../team/rules/provision-user.ts';
import { setPassword } from '../../team/store/user.ts';
import type { SignIn } from '../../../protocol/api/session.ts';
import { findSession } from '../store/sessions.ts';
import { createSignInLink } from './links.ts';
import type { Passwords } from './passwords.ts';
import { proveAgain, signIn, type SignInDeps } from './sign-in.ts';

const store = await openStore({ kind: 'sqlite', path: ':memory:' });
const { db } = store;
afterAll(() => store[Symbol.asyncDispose]());
const it = { nowUs: 1e15, triedAtMs: 0 };
const clock = () => it.nowUs;
/** Hashes that cost nothing: the real ones have their own tests. */
const passwords: Passwords = {
  hash: async password => `hash of ${password}`,
  verify: async (password, hash) => hash === `hash of ${password}`,
};
const deps: SignInDeps = {
  ...{ db, clock, passwords, credentials: new CredentialCache(store, clock) },
  signInAttempts: new RateLimiter(() => it.triedAtMs),
};
const ada = await createUser(deps, { email: 'ada@example.org', name: 'Ada' });
const eve = await createUser(deps, { email: 'eve@example.org', name: 'Eve', isOperator: true });
await createUser(deps, { email: 'new@example.org', name: 'New' });
for (const { userId, name } of [ada, eve]) await setPassword(db, userId, `hash of ${name}`);
const adas = await createAccessToken(deps, ada, 'k');
const eves = await createAccessToken(deps, eve, 'k');

const from = { address: '192.0.2.1', userAgent: 'test' };
const begin = (proof: SignIn, changed: Partial<SignInDeps> = {}) => signIn({ ...deps, ...changed }, proof, from);
const codeFor = async (userId: string | null) => (await createSignInLink(deps, userId)).path.split('#')[1] ?? '';
const passwordOf = (email: string, password: string): SignIn => ({ email: `${email}@example.org`, password });
const refused = { code: 'unauthenticated', message: expect.stringContaining('That does not sign in') };
const asAda = { userId: ada.userId, isOperator: false };
const asEve = { userId: eve.userId, isOperator: true };

test('a link, a token and a password begin a session, with the rights that each gives', async () => {
  const good: [SignIn, object][] = [
    [{ code: await codeFor(ada.userId) }, asAda],
    [{ code: await codeFor(eve.userId) }, asEve],
    [{ code: await codeFor(null) }, { userId: null, isOperator: true }],
    [{ accessToken: ` ${adas.text} ` }, asAda],
    // Programs hold tokens, so tokens give no operator's rights.
    [{ accessToken: eves.text }, { userId: eve.userId, isOperator: false }],
    [passwordOf('ada', 'Ada'), asAda],
    [passwordOf('eve', 'Eve'), asEve],
  ];
  for (const [proof, who] of good) {
    const { session } = await begin(proof);
    expect(session).toMatchObject({ ...who, provenAtUs: it.nowUs, address: '192.0.2.1' });
    expect(await findSession(db, session.digest)).toEqual(session);
  }
});

test('all invalid proofs are refused alike', async () => {
  const wrong: SignIn[] = [
    {},
    { code: '0'.repeat(64) },
    { accessToken: 'sk_e2b_0000' },
    { accessToken: `sk_e2b_${'0'.repeat(40)}` },
    { email: 'ada@example.org' },
    { password: 'Ada' },
    passwordOf('ada', 'Eve'),
    passwordOf('nobody', 'Ada'),
    passwordOf('new', ''),
  ];
  for (const proof of wrong) await expect(begin(proof)).rejects.toMatchObject(refused);
});

test('a link works once, in its time, and for an existing user', async () => {
  const code = await codeFor(ada.userId);
  await begin({ code });
  await expect(begin({ code })).rejects.toMatchObject(refused);
  const late = await codeFor(ada.userId);
  it.nowUs += 15 * 60 * 1_000_000;
  await expect(begin({ code: late })).rejects.toMatchObject(refused);
  const inTime = await codeFor(ada.userId);
  it.nowUs += 15 * 60 * 1_000_000 - 1;
  expect((await begin({ code: inTime })).session.userId).toBe(ada.userId);
  const gone = await createUser(deps, { email: null, name: 'Gone' });
  const ofGone = await codeFor(gone.userId);
  await db.deleteFrom('users').where('user_id', '=', gone.userId).execute();
  await expect(begin({ code: ofGone })).rejects.toMatchObject(refused);
});

test('a proof that ends while it is checked begins no session', async () => {
  const before = (await db.selectFrom('sessions').select('session_id').execute()).length;
  // Checking a password takes long, and it was changed meanwhile.
  const changing: Passwords = {
    ...passwords,
    async verify(password, hash) {
      await setPassword(db, ada.userId, 'hash of another');
      return passwords.verify(password, hash);
    },
  };
  await expect(begin(passwordOf('ada', 'Ada'), { passwords: changing })).rejects.toMatchObject(refused);
  await setPassword(db, ada.userId, 'hash of Ada');
  // A token that this process remembers, and that another one has revoked.
  const revoked = await createAccessToken(deps, ada, 'revoked');
  await begin({ accessToken: revoked.text });
  await db.deleteFrom('access_tokens').where('token_id', '=', revoked.token.tokenId).execute();
  const remembering = new CredentialCache({ ...store, changedElsewhere: () => false }, clock);
  remembering.accessToken = async () => ({ tokenId: 't', user: ada, memberships: [] });
  await expect(begin({ accessToken: revoked.text }, { credentials: remembering })).rejects.toMatchObject(refused);
  expect((await db.selectFrom('sessions').select('session_id').execute()).length).toBe(before + 1);
});

test('five passwords are tried for an account, and then one in two seconds, whether it exists or not', async () => {
  it.triedAtMs += 100_000;
  for (const email of ['ada', 'nobody']) {
    for (let tries = 0; tries < 5; tries++)
      await expect(begin(passwordOf(email, 'wrong'))).rejects.toMatchObject(refused);
    await expect(begin(passwordOf(email, 'Ada'))).rejects.toMatchObject({
      code: 'rate_limited',
      message: expect.stringContaining('passwords for this account'),
      retryAfterSeconds: 2,
    });
  }
  // Others don't have to wait.
  await begin(passwordOf('eve', 'Eve'));
  it.triedAtMs += 2_000;
  await begin(passwordOf('ada', 'Ada'));
});

test('a session proves again whose it is, but not with somebody else’s proof', async () => {
  it.triedAtMs += 100_000;
  const { session } = await begin(passwordOf('ada', 'Ada'));
  const provenAt = async () => (await findSession(db, session.digest))?.provenAtUs;
  it.nowUs += 5;
  await expect(proveAgain(deps, session, { password: 'Eve' })).rejects.toMatchObject(refused);
  await expect(proveAgain(deps, session, { code: await codeFor(eve.userId) })).rejects.toMatchObject(refused);
  await expect(proveAgain(deps, session, { code: await codeFor(null) })).rejects.toMatchObject(refused);
  expect(await provenAt()).toBe(it.nowUs - 5);
  const { credentials } = deps;
  expect((await credentials.session(session.digest))?.session.provenAtUs).toBe(it.nowUs - 5);
  // Its e-mail address is known, so only the password is needed.
  await proveAgain(deps, session, { password: 'Ada' });
  expect([await provenAt(), (await credentials.session(session.digest))?.session.provenAtUs]).toEqual([
    it.nowUs,
    it.nowUs,
  ]);
  // The operator without an account proves it with a link only.
  const operator = await begin({ code: await codeFor(null) });
  await expect(proveAgain(deps, operator.session, { password: 'Ada' })).rejects.toMatchObject(refused);
  await proveAgain(deps, operator.session, { code: await codeFor(null) });
});
