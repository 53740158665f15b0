import { afterAll, expect, test } from 'bun:test';
import { openStore } from '../../database/database.ts';
import { beginSession } from '../../session/rules/begin.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { addMember, createUser } from '../../team/rules/provision-user.ts';
import { insertVolume, findVolume } from '../../volume/store/volumes.ts';
import { volumeToken } from '../../volume/rules/token.ts';
import type { Way } from '../caller.ts';
import { createAccessToken } from './access-tokens.ts';
import { createApiKey } from './api-keys.ts';
import { authenticate, type AuthenticationDeps, type Credentials } from './authenticate.ts';
import { CredentialCache } from './cache.ts';

const store = await openStore({ kind: 'sqlite', path: ':memory:' });
const { db } = store;
afterAll(() => store[Symbol.asyncDispose]());
const clock = () => 1e15;
const credentials = new CredentialCache(store, clock);
const deps: AuthenticationDeps = {
  ...{ adminToken: 'admin', metricsToken: 'metrics', clock, credentials, db },
  ...{ domain: 'example.org', seed: new Uint8Array(32).fill(1) },
};

const team = (slug: string) => createTeam(deps, { name: slug, slug });
const [first, second, foreign] = [await team('first'), await team('second'), await team('foreign')];
const ada = await createUser(deps, { email: null, name: 'Ada' });
const eve = await createUser(deps, { email: null, name: 'Eve', isOperator: true });
await addMember(deps, first, ada, 'admin');
await addMember(deps, second, ada, 'developer');
const key = await createApiKey(deps, first, 'k');
const token = await createAccessToken(deps, ada, 'k');
const from = { address: '192.0.2.1', userAgent: 'test' };
const sessionOf = async (userId: string | null, isOperator: boolean) =>
  (await beginSession(deps, { userId, isOperator }, from)).value;
const sessions = {
  ada: await sessionOf(ada.userId, false),
  eve: await sessionOf(eve.userId, true),
  operator: await sessionOf(null, true),
};
const volumeOf = async (volumeId: string) => {
  const made = { volumeId, teamId: first.teamId, nodeId: 'n', name: volumeId, sizeMiB: 1, createdAtUs: 1 };
  await insertVolume(db, made, 100);
  const volume = (await findVolume(db, volumeId)) ?? Promise.reject(new Error('it is gone'));
  return volumeToken({ ...deps, volumeTokenSeconds: 60 }, await volume);
};
const ofVolume = await volumeOf('v1');

const nothing: Credentials = { apiKey: null, bearer: null, adminToken: null, session: null, teamId: null };
const find = (way: Way | Way[], sent: Partial<Credentials>, readsOrRemoves = true, changed = {}) =>
  authenticate({ ...deps, ...changed }, { ...nothing, ...sent }, [way].flat(), readsOrRemoves);
const refused = { code: 'unauthenticated', message: expect.stringContaining('No valid credential was sent: ') };

const asKey = { kind: 'team', team: { teamId: first.teamId }, provenAtUs: null, actor: { kind: 'apiKey' } };
const asAda = (teamId: string, role: string, provenAtUs: number | null) => ({
  ...{ kind: 'team', team: { teamId }, role, provenAtUs, actor: { kind: 'user', id: ada.userId } },
});
const operator = { kind: 'admin', id: null };
const accepted: [Way, string, Partial<Credentials>, object][] = [
  ['apiKey', 'a key', { apiKey: key.text }, { ...asKey, actor: { kind: 'apiKey', id: key.key.keyId } }],
  ['apiKey', 'a key between blanks', { apiKey: ` ${key.text} ` }, asKey],
  [
    'user',
    'a token',
    { bearer: token.text },
    { kind: 'user', user: ada, provenAtUs: null, held: { kind: 'accessToken' } },
  ],
  [
    'user',
    'a session',
    { session: sessions.ada },
    { kind: 'user', user: ada, provenAtUs: 1e15, held: { kind: 'session' } },
  ],
  ['user', 'a session beside a bad token', { bearer: 'x', session: sessions.ada }, { held: { kind: 'session' } }],
  ['userTeam', 'a token', { bearer: token.text, teamId: second.teamId }, asAda(second.teamId, 'developer', null)],
  ['userTeam', 'a session', { session: sessions.ada, teamId: first.teamId }, asAda(first.teamId, 'admin', 1e15)],
  ['userDefaultTeam', 'a token', { bearer: token.text }, asAda(first.teamId, 'admin', null)],
  ['admin', 'the token', { adminToken: 'admin' }, { kind: 'admin', provenAtUs: null, actor: operator }],
  ['admin', 'a session of the operator', { session: sessions.operator }, { kind: 'admin', provenAtUs: 1e15 }],
  ['admin', 'a session of a user who is one', { session: sessions.eve }, { kind: 'admin', actor: operator }],
  [
    'adminTeam',
    'the token',
    { adminToken: 'admin', teamId: foreign.teamId },
    { kind: 'team', team: { teamId: foreign.teamId }, role: 'admin', actor: operator, provenAtUs: null },
  ],
  ['session', 'one of a user', { session: sessions.ada }, { kind: 'session', user: ada, actor: { kind: 'user' } }],
  ['session', 'one of the operator', { session: sessions.operator }, { kind: 'session', user: null, actor: operator }],
  ['userSession', 'one of a user', { session: sessions.ada }, { user: ada, provenAtUs: 1e15 }],
  ['operatorSession', 'one of a user', { session: sessions.eve }, { user: { userId: eve.userId } }],
  ['operatorSession', 'one of the operator', { session: sessions.operator }, { user: null }],
  ['metricsToken', 'the token', { bearer: 'metrics' }, { kind: 'scraper', actor: null }],
  [
    'volumeToken',
    'the token',
    { bearer: ofVolume },
    { kind: 'volume', team: first, volume: { volumeId: 'v1' }, actor: null },
  ],
];

test.each(accepted)('%s: %s is good', async (way, _, sent, caller) => {
  expect(await find(way, sent)).toMatchObject(caller);
});

const unknownSession = '0'.repeat(64);
const wrong: [Way, string, Partial<Credentials>][] = [
  ['apiKey', 'nothing', {}],
  ['apiKey', 'a token', { apiKey: token.text }],
  ['apiKey', 'an unknown key', { apiKey: `e2b_${'0'.repeat(40)}` }],
  ['user', 'nothing', {}],
  ['user', 'a key', { bearer: key.text }],
  ['user', 'a session of nobody', { session: sessions.operator }],
  ['user', 'an unknown session', { session: unknownSession }],
  ['userTeam', 'no team', { bearer: token.text }],
  ['userTeam', 'a team of others', { bearer: token.text, teamId: foreign.teamId }],
  ['userTeam', 'nobody', { teamId: first.teamId }],
  ['userDefaultTeam', 'a named team', { bearer: token.text, teamId: first.teamId }],
  ['userDefaultTeam', 'somebody without a team', { session: sessions.eve }],
  ['userDefaultTeam', 'nobody', {}],
  ['admin', 'nothing', {}],
  ['admin', 'another token', { adminToken: 'other' }],
  ['admin', 'a session of a user', { session: sessions.ada }],
  ['adminTeam', 'no team', { adminToken: 'admin' }],
  ['adminTeam', 'a team that is not there', { adminToken: 'admin', teamId: 'none' }],
  ['adminTeam', 'somebody else', { teamId: first.teamId, session: sessions.ada }],
  ['session', 'nothing', {}],
  ['session', 'an unknown one', { session: unknownSession }],
  ['session', 'no cookie of ours', { session: 'x' }],
  ['userSession', 'one of nobody', { session: sessions.operator }],
  ['userSession', 'nothing', {}],
  ['operatorSession', 'one of a user', { session: sessions.ada }],
  ['operatorSession', 'nothing', {}],
  ['metricsToken', 'nothing', {}],
  ['metricsToken', 'another token', { bearer: 'other' }],
  ['volumeToken', 'nothing', {}],
  ['volumeToken', 'another token', { bearer: token.text }],
];

test.each(wrong)('%s: %s is not', async (way, _, sent) => {
  await expect(find(way, sent)).rejects.toMatchObject(refused);
});

test('where the installation has no such token, none is valid', async () => {
  await expect(find('admin', { adminToken: 'null' }, true, { adminToken: null })).rejects.toMatchObject(refused);
  await expect(find('metricsToken', { bearer: 'null' }, true, { metricsToken: null })).rejects.toMatchObject(refused);
});

test('the token of a volume is worthless without the volume, and for another team', async () => {
  const bearer = await volumeOf('v2');
  await db.deleteFrom('volumes').where('volume_id', '=', 'v2').execute();
  await expect(find('volumeToken', { bearer })).rejects.toMatchObject(refused);
  const made = { volumeId: 'v2', teamId: foreign.teamId, nodeId: 'n', name: 'v2', sizeMiB: 1, createdAtUs: 1 };
  await insertVolume(db, made, 100);
  await expect(find('volumeToken', { bearer })).rejects.toMatchObject(refused);
});

test('a valid credential counts whatever else is sent, and the first valid way decides', async () => {
  const ways: Way[] = ['apiKey', 'userTeam', 'admin'];
  expect(await find(ways, { apiKey: 'x', adminToken: 'admin' })).toMatchObject({ kind: 'admin' });
  expect(await find(ways, { apiKey: key.text, adminToken: 'admin' })).toMatchObject(asKey);
});

test('without a valid credential the error says what is needed, and that an unknown key is of nowhere', async () => {
  const message = (text: string) => ({ message: `No valid credential was sent: ${text}` });
  const needs =
    "this needs the header X-API-Key with an API key of your team, or X-Admin-Token, or an operator's session";
  const known = "the API key in X-API-Key is none of this installation's, or was revoked";
  for (const [apiKey, text] of [
    [null, needs],
    ['  ', needs],
    ['other', known],
  ] as const)
    await expect(find(['apiKey', 'admin'], { apiKey })).rejects.toMatchObject(message(text));
  // An API key does not help there.
  await expect(find('admin', { apiKey: 'other' })).rejects.toMatchObject(
    message("this needs X-Admin-Token, or an operator's session"),
  );
});

test('a banned team is refused, and a blocked one may read and remove; an operator acts for both', async () => {
  const set = async (change: { banned: 0 | 1; blocked: 0 | 1 }) => {
    await db.updateTable('teams').set(change).where('team_id', '=', first.teamId).execute();
    credentials.clear();
  };
  const asOperator = { adminToken: 'admin', teamId: first.teamId };
  const callers: [Way, Partial<Credentials>][] = [
    ['apiKey', { apiKey: key.text }],
    ['userTeam', { bearer: token.text, teamId: first.teamId }],
    ['volumeToken', { bearer: ofVolume }],
  ];
  try {
    await set({ banned: 0, blocked: 1 });
    for (const [way, sent] of callers) {
      expect(await find(way, sent, true)).toMatchObject({ team: { teamId: first.teamId } });
      await expect(find(way, sent, false)).rejects.toMatchObject({
        code: 'forbidden',
        message: expect.stringContaining('is blocked'),
      });
    }
    expect(await find('adminTeam', asOperator, false)).toMatchObject({ kind: 'team' });
    await set({ banned: 1, blocked: 0 });
    for (const [way, sent] of callers)
      await expect(find(way, sent, true)).rejects.toMatchObject({ code: 'forbidden', message: 'This team is banned' });
    expect(await find('adminTeam', asOperator, false)).toMatchObject({ kind: 'team' });
    // A caller who acts for no team need not name one.
    expect(await find('user', { bearer: token.text }, false)).toMatchObject({ kind: 'user' });
  } finally {
    await set({ banned: 0, blocked: 0 });
  }
});
