import { afterAll, expect, test } from 'bun:test';
import { openStore } from '../../database/database.ts';
import { beginSession } from '../../session/rules/begin.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { addMember, createUser } from '../../team/rules/provision-user.ts';
import { setOperator } from '../../team/store/user.ts';
import { createAccessToken } from './access-tokens.ts';
import { createApiKey } from './api-keys.ts';
import { CredentialCache } from './cache.ts';
import { digestOf } from './credential.ts';

const store = await openStore({ kind: 'sqlite', path: ':memory:' });
const { db } = store;
afterAll(() => store[Symbol.asyncDispose]());
const it = { nowUs: 1e15 };
const clock = () => it.nowUs;

/** A process whose database reports when another process has changed something. */
function process() {
  const state = { isChanged: false };
  const changedElsewhere = () => {
    const { isChanged } = state;
    state.isChanged = false;
    return isChanged;
  };
  return { state, cache: new CredentialCache({ ...store, db, changedElsewhere }, clock) };
}

const deps = { db, clock, credentials: process().cache };
const team = await createTeam(deps, { name: 'T', slug: 't' });
const ada = await createUser(deps, { email: null, name: 'Ada', isOperator: true });
await addMember(deps, team, ada);
const digestOfKey = (text: string) => digestOf('apiKey', text) ?? '';
const digestOfToken = (text: string) => digestOf('accessToken', text) ?? '';
const sessionOf = (userId: string | null, isOperator: boolean) =>
  beginSession(deps, { userId, isOperator }, { address: '192.0.2.1', userAgent: 'test' });

test('found credentials are remembered until something changes, here or elsewhere', async () => {
  const { cache, state } = process();
  const { text, key } = await createApiKey(deps, team, 'k');
  const digest = digestOfKey(text);
  expect(await cache.apiKey(digest)).toMatchObject({ keyId: key.keyId, team: { teamId: team.teamId } });
  await db.deleteFrom('api_keys').where('key_id', '=', key.keyId).execute();
  expect(await cache.apiKey(digest)).not.toBeNull();
  cache.clear();
  expect(await cache.apiKey(digest)).toBeNull();
  expect((await cache.team(team.teamId))?.name).toBe('T');
  await db.updateTable('teams').set({ name: 'Other' }).where('team_id', '=', team.teamId).execute();
  expect((await cache.team(team.teamId))?.name).toBe('T');
  state.isChanged = true;
  expect((await cache.team(team.teamId))?.name).toBe('Other');
});

test('missing credentials are looked up again', async () => {
  const { cache } = process();
  expect(await cache.team('later')).toBeNull();
  await db
    .insertInto('teams')
    .values(
      (await db.selectFrom('teams').selectAll().execute()).map(row => ({ ...row, team_id: 'later', slug: 'later' })),
    )
    .execute();
  expect(await cache.team('later')).not.toBeNull();
});

test('a credential read before a change is not remembered after it', async () => {
  const { cache } = process();
  const { text, key } = await createApiKey(deps, team, 'k');
  const reading = cache.apiKey(digestOfKey(text));
  cache.clear();
  await reading;
  await db.deleteFrom('api_keys').where('key_id', '=', key.keyId).execute();
  expect(await cache.apiKey(digestOfKey(text))).toBeNull();
});

test('a token is known with the teams of its user', async () => {
  const { cache } = process();
  const { text, token } = await createAccessToken(deps, ada, 'k');
  expect(await cache.accessToken(digestOfToken(text))).toMatchObject({
    ...{ tokenId: token.tokenId, user: { userId: ada.userId } },
    memberships: [{ team: { teamId: team.teamId }, isDefault: true }],
  });
  expect(await cache.accessToken(digestOfToken(`sk_e2b_${'0'.repeat(40)}`))).toBeNull();
});

test('a session is known with its user, for as long as it lives and is used', async () => {
  const { cache } = process();
  const { session } = await sessionOf(ada.userId, true);
  expect(await cache.session(session.digest)).toMatchObject({
    ...{ session: { sessionId: session.sessionId, isOperator: true }, user: { userId: ada.userId } },
    memberships: [{ team: { teamId: team.teamId } }],
  });
  const idleUs = 12 * 3600 * 1e6;
  // Each use keeps it for longer.
  for (let uses = 0; uses < 3; uses++) {
    it.nowUs += idleUs - 1;
    expect((await cache.session(session.digest))?.session.lastUsedAtUs).toBe(it.nowUs);
  }
  it.nowUs += idleUs;
  expect(await cache.session(session.digest)).toBeNull();
  expect(await cache.session('0'.repeat(64))).toBeNull();
});

test('the rights of a session end with those of its user, and it ends with the user', async () => {
  const { cache } = process();
  const operator = await sessionOf(null, true);
  expect(await cache.session(operator.session.digest)).toEqual({
    ...{ session: { ...operator.session, lastUsedAtUs: it.nowUs }, user: null, memberships: [] },
  });
  const [own, plain] = [await sessionOf(ada.userId, true), await sessionOf(ada.userId, false)];
  const isOperator = async ({ session }: typeof own) => (await cache.session(session.digest))?.session.isOperator;
  expect([await isOperator(own), await isOperator(plain)]).toEqual([true, false]);
  await setOperator(db, ada.userId, false);
  cache.clear();
  expect([await isOperator(own), await isOperator(plain)]).toEqual([false, false]);
  await setOperator(db, ada.userId, true);
  const gone = await createUser(deps, { email: null, name: 'Gone' });
  const ofGone = await sessionOf(gone.userId, false);
  await db.deleteFrom('users').where('user_id', '=', gone.userId).execute();
  expect(await cache.session(ofGone.session.digest)).toBeNull();
});

test('the last use of credentials is recorded, once', async () => {
  const { cache } = process();
  const [key, token, session] = [
    await createApiKey(deps, team, 'k'),
    await createAccessToken(deps, ada, 'k'),
    await sessionOf(ada.userId, false),
  ];
  it.nowUs += 1_000_000;
  await cache.apiKey(digestOfKey(key.text));
  await cache.accessToken(digestOfToken(token.text));
  await cache.session(session.session.digest);
  const used = async () => [
    await db.selectFrom('api_keys').select('last_used_at_us').where('key_id', '=', key.key.keyId).executeTakeFirst(),
    await db
      .selectFrom('access_tokens')
      .select('last_used_at_us')
      .where('token_id', '=', token.token.tokenId)
      .executeTakeFirst(),
    await db
      .selectFrom('sessions')
      .select('last_used_at_us')
      .where('session_id', '=', session.session.sessionId)
      .executeTakeFirst(),
  ];
  await cache.flushUses();
  expect(await used()).toEqual(Array.from({ length: 3 }, () => ({ last_used_at_us: it.nowUs })));
  for (const table of ['api_keys', 'access_tokens', 'sessions'] as const)
    await db.updateTable(table).set({ last_used_at_us: 1 }).execute();
  await cache.flushUses();
  expect(await used()).toEqual(Array.from({ length: 3 }, () => ({ last_used_at_us: 1 })));
});
