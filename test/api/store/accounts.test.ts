import { expect, test } from 'bun:test';
import {
  deleteAccessToken,
  findAccessToken,
  insertAccessToken,
  listAccessTokens,
} from '../../../src/api/credential/store/access-token.ts';
import {
  countApiKeys,
  deleteApiKey,
  findApiKey,
  insertApiKey,
  listApiKeys,
  pruneApiKeys,
  renameApiKey,
  touchCredentials,
} from '../../../src/api/credential/store/api-key.ts';
import { findByIdentity, insertIdentity } from '../../../src/api/session/store/identities.ts';
import {
  deleteSession,
  deleteSessionsOf,
  findSession,
  insertSession,
  listSessions,
  pruneSessions,
  pruneSessionsOf,
  setProven,
  touchSessions,
} from '../../../src/api/session/store/sessions.ts';
import { insertSignInLink, pruneSignInLinks, takeSignInLink } from '../../../src/api/session/store/sign-in-links.ts';
import {
  countInvitations,
  deleteInvitation,
  insertInvitation,
  listInvitations,
  pruneInvitations,
  takeInvitationRow,
} from '../../../src/api/team/store/invitations.ts';
import {
  countMembers,
  deleteMember,
  insertMember,
  insertUser,
  listMembers,
  setRole,
  teamsOf,
} from '../../../src/api/team/store/member.ts';
import { findTeam, updateTeam } from '../../../src/api/team/store/team.ts';
import { findPassword, findUsers, setOperator, setPassword } from '../../../src/api/team/store/user.ts';
import type { Db } from '../../../src/api/database/db.ts';
import { onEachDatabase } from '../databases.ts';
import { atOnce, startUs, storeScene } from './scene.ts';

// Results of statements about people, on both databases: teams and members, credentials, sessions.

async function putUser(db: Db, userId: string): Promise<void> {
  const email = `${userId}@example.org`;
  await insertUser(db, { userId, email, name: userId, createdAtUs: startUs, isOperator: false, hasPassword: false });
}

const credential = (name: string, number: number) => ({
  name,
  digest: `digest of ${name} ${number}`,
  valueLength: 40,
  maskPrefix: 'ab',
  maskSuffix: 'yz',
  createdAtUs: startUs + number,
  lastUsedAtUs: null,
});

onEachDatabase(database => {
  test('teams: of a change what is named changes, and two changes of limits at once are both kept', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    expect(await updateTeam(db, 'none', { name: 'New' })).toBeNull();
    expect(await updateTeam(db, mine.teamId, {})).toMatchObject({ slug: 'mine', limits: {} });
    await updateTeam(db, mine.teamId, { limits: { sandboxes: 5 }, blocked: true });
    await Promise.all([
      updateTeam(db, mine.teamId, { limits: { builds: 3 } }),
      updateTeam(db, mine.teamId, { limits: { sandboxes: null, volumes: 2 } }),
    ]);
    expect(await findTeam(db, { slug: 'mine' })).toMatchObject({
      teamId: mine.teamId,
      name: 'mine',
      blocked: true,
      banned: false,
      limits: { builds: 3, volumes: 2 },
    });
    expect((await findTeam(db, { teamId: mine.teamId }))?.limits.sandboxes).toBeUndefined();
    expect(await findTeam(db, { teamId: theirs.teamId })).toMatchObject({ limits: {}, blocked: false });
  });

  test('members: a user has roles in teams, the default team first', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    await putUser(db, 'one');
    await putUser(db, 'two');
    const { teamId } = mine;
    await insertMember(db, { teamId, userId: 'one', isDefault: false, role: 'developer', nowUs: startUs });
    await insertMember(db, {
      teamId: theirs.teamId,
      userId: 'one',
      isDefault: true,
      role: 'admin',
      nowUs: startUs + 1,
    });
    await insertMember(db, { teamId, userId: 'two', isDefault: true, role: 'admin', nowUs: startUs + 2 });
    expect((await teamsOf(db, 'one')).map(({ team, isDefault, role }) => [team.slug, isDefault, role])).toEqual([
      ['theirs', true, 'admin'],
      ['mine', false, 'developer'],
    ]);
    await setRole(db, teamId, 'one', 'admin');
    expect((await listMembers(db, teamId)).map(({ user, role }) => [user.userId, role])).toEqual([
      ['one', 'admin'],
      ['two', 'admin'],
    ]);
    expect([...(await findUsers(db, ['one', 'none'])).keys()]).toEqual(['one']);
    expect(await findUsers(db, [])).toEqual(new Map());
    expect(await deleteMember(db, teamId, 'one')).toBe(true);
    expect(await deleteMember(db, teamId, 'one')).toBe(false);
    expect([await countMembers(db, teamId), await countMembers(db, theirs.teamId)]).toEqual([1, 1]);
  });

  test('users: a password is found by the address of who has one, and an operator is one from then on', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    await putUser(db, 'one');
    await putUser(db, 'two');
    expect(await findPassword(db, 'one@example.org')).toBeNull();
    await setPassword(db, 'one', 'hash');
    await setOperator(db, 'one', true);
    expect(await findPassword(db, 'one@example.org')).toMatchObject({
      hash: 'hash',
      user: { userId: 'one', isOperator: true, hasPassword: true },
    });
    expect((await findUsers(db, ['two'])).get('two')).toMatchObject({ isOperator: false, hasPassword: false });
  });

  test('invitations: one of two who take the same gets it, and what has expired is not listed', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const invite = (invitationId: string, teamId: string, expiresAtUs: number) => ({
      invitationId,
      digest: `digest of ${invitationId}`,
      teamId,
      role: 'developer' as const,
      note: '',
      createdAtUs: startUs,
      expiresAtUs,
    });
    await insertInvitation(db, invite('a', mine.teamId, startUs + 10));
    await insertInvitation(db, invite('b', mine.teamId, startUs + 20));
    await insertInvitation(db, invite('c', theirs.teamId, startUs + 20));
    expect((await listInvitations(db, mine.teamId, startUs + 10)).map(one => one.invitationId)).toEqual(['b']);
    const taken = await atOnce(() => takeInvitationRow(db, 'digest of b'));
    expect(taken.filter(one => one !== null)).toEqual([invite('b', mine.teamId, startUs + 20)]);
    // An ID that belongs to another team finds nothing.
    expect(await deleteInvitation(db, mine.teamId, 'c')).toBe(false);
    expect(await deleteInvitation(db, theirs.teamId, 'c')).toBe(true);
    await pruneInvitations(db, startUs + 11);
    expect(await countInvitations(db, mine.teamId)).toBe(0);
  });

  test('API keys: found by their digest with their team, and of those that a user makes again the newest stay', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    await putUser(db, 'one');
    const key = (keyId: string, teamId: string, name: string, number: number, createdBy: string | null = null) => ({
      keyId,
      teamId,
      createdBy,
      ...credential(name, number),
    });
    await insertApiKey(db, key('a', mine.teamId, 'ci', 0));
    await insertApiKey(db, key('b', theirs.teamId, 'ci', 1));
    for (const number of [2, 3, 4]) await insertApiKey(db, key(`login-${number}`, mine.teamId, 'login', number, 'one'));
    expect(await findApiKey(db, 'digest of ci 1')).toMatchObject({ keyId: 'b', team: { slug: 'theirs' } });
    expect(await findApiKey(db, 'digest of ci 2')).toBeNull();
    expect(await countApiKeys(db, mine.teamId, 'login')).toBe(1);
    await pruneApiKeys(db, { teamId: mine.teamId, createdBy: 'one', name: 'login' }, 2);
    await touchCredentials(db, 'api_keys', 'key_id', new Map([['a', startUs + 9]]));
    expect(await renameApiKey(db, theirs.teamId, 'a', 'mine now')).toBe(false);
    expect(await renameApiKey(db, mine.teamId, 'a', 'builds')).toBe(true);
    expect(await deleteApiKey(db, theirs.teamId, 'a')).toBe(false);
    expect(await listApiKeys(db, mine.teamId)).toEqual([
      { ...key('a', mine.teamId, 'builds', 0), digest: 'digest of ci 0', lastUsedAtUs: startUs + 9 },
      key('login-3', mine.teamId, 'login', 3, 'one'),
      key('login-4', mine.teamId, 'login', 4, 'one'),
    ]);
    expect(await deleteApiKey(db, mine.teamId, 'a')).toBe(true);
    expect(await findApiKey(db, 'digest of ci 0')).toBeNull();
  });

  test('access tokens: a user has them, and nobody else removes them', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    await putUser(db, 'one');
    await putUser(db, 'two');
    const token = { tokenId: 'a', userId: 'one', ...credential('laptop', 0) };
    await insertAccessToken(db, token);
    expect(await findAccessToken(db, token.digest)).toMatchObject({ tokenId: 'a', user: { userId: 'one' } });
    expect(await deleteAccessToken(db, 'two', 'a')).toBe(false);
    expect(await listAccessTokens(db, 'one')).toEqual([token]);
    expect(await deleteAccessToken(db, 'one', 'a')).toBe(true);
    expect(await findAccessToken(db, token.digest)).toBeNull();
  });

  test('sessions: the newest of each user stay, the operator without account apart from everybody', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    await putUser(db, 'one');
    await putUser(db, 'two');
    const session = (sessionId: string, userId: string | null, number: number) => ({
      sessionId,
      digest: `digest of ${sessionId}`,
      userId,
      isOperator: userId === null,
      createdAtUs: startUs + number,
      lastUsedAtUs: startUs + number,
      provenAtUs: startUs,
      address: '192.0.2.1',
      userAgent: 'test',
    });
    for (const number of [0, 1, 2]) await insertSession(db, session(`one-${number}`, 'one', number));
    await insertSession(db, session('two', 'two', 3));
    await insertSession(db, session('operator', null, 4));
    expect(await pruneSessionsOf(db, 'one', 2)).toBe(1n);
    expect(await pruneSessionsOf(db, null, 1)).toBe(0n);
    expect((await listSessions(db, 'one')).map(({ sessionId }) => sessionId)).toEqual(['one-2', 'one-1']);
    expect(await listSessions(db, null)).toEqual([session('operator', null, 4)]);
    expect(await deleteSession(db, 'one-1', 'two')).toBe(false);
    expect(await deleteSession(db, 'operator', 'one')).toBe(false);
    expect(await deleteSession(db, 'one-1', 'one')).toBe(true);
    await setProven(db, 'two', startUs + 50);
    await touchSessions(db, new Map([['two', startUs + 60]]));
    expect(await findSession(db, 'digest of two')).toEqual({
      ...session('two', 'two', 3),
      provenAtUs: startUs + 50,
      lastUsedAtUs: startUs + 60,
    });
    // A session that is used goes on, until it is too old all the same.
    await pruneSessions(db, { createdBeforeUs: startUs, usedBeforeUs: startUs + 10 });
    expect(await listSessions(db, 'one')).toEqual([]);
    expect(await findSession(db, 'digest of two')).not.toBeNull();
    await pruneSessions(db, { createdBeforeUs: startUs + 4, usedBeforeUs: startUs });
    expect(await findSession(db, 'digest of two')).toBeNull();
    await insertSession(db, session('again', 'two', 9));
    await deleteSessionsOf(db, 'two');
    expect(await listSessions(db, 'two')).toEqual([]);
  });

  test('links that sign in: one of two who come with the same is let in', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    const link = (digest: string, expiresAtUs: number) => ({ digest, userId: null, isOperator: true, expiresAtUs });
    await insertSignInLink(db, link('a', startUs + 1));
    await insertSignInLink(db, link('b', startUs + 5));
    expect((await atOnce(() => takeSignInLink(db, 'a'))).filter(one => one !== null)).toEqual([link('a', startUs + 1)]);
    await pruneSignInLinks(db, startUs + 6);
    expect(await takeSignInLink(db, 'b')).toBeNull();
  });

  test('identities at providers: each is one account’s, the first one’s', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    await putUser(db, 'one');
    await putUser(db, 'two');
    const identity = { issuer: 'https://id.example.org', subject: '7' };
    expect(await findByIdentity(db, identity)).toBeNull();
    await insertIdentity(db, identity, { userId: 'one', nowUs: startUs });
    await insertIdentity(db, identity, { userId: 'two', nowUs: startUs });
    expect((await findByIdentity(db, identity))?.userId).toBe('one');
    expect(await findByIdentity(db, { ...identity, issuer: 'https://other.example.org' })).toBeNull();
  });
});
