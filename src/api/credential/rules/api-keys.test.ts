import { afterAll, beforeEach, expect, test } from 'bun:test';
import { newUuid } from '../../../base/id.ts';
import { openStore } from '../../database/database.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { addMember, createUser } from '../../team/rules/provision-user.ts';
import { listedKeyName } from '../record.ts';
import { createApiKey, createMembersKey, listTeamKeys, renameTeamKey, revokeTeamKey } from './api-keys.ts';
import { CredentialCache } from './cache.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
let nowUs = 1;
const clock = () => nowUs++;
const deps = { db, clock, credentials: new CredentialCache({ db, ...store }, clock) };
const [mine, theirs] = [
  await createTeam(deps, { name: 'm', slug: 'm' }),
  await createTeam(deps, { name: 't', slug: 't' }),
];
const ada = await createUser(deps, { email: null, name: 'Ada' });
const bob = await createUser(deps, { email: null, name: 'Bob' });
await addMember(deps, mine, ada, 'admin');
await addMember(deps, mine, bob, 'developer');
beforeEach(async () => void (await db.deleteFrom('api_keys').execute()));

const names = async (team = mine) => (await listTeamKeys(db, team)).map(({ key }) => key.name);
/** A key like those that `GET /teams` makes. */
const listed = async () => {
  const { key } = await createApiKey(deps, mine, 'x');
  await db.updateTable('api_keys').set({ name: listedKeyName }).where('key_id', '=', key.keyId).execute();
  return key.keyId;
};

test('a team has at most a thousand keys, not counting those of lists', async () => {
  for (let count = 0; count < 1000; count++) await createApiKey(deps, mine, `k${count}`);
  await expect(createApiKey(deps, mine, 'more')).rejects.toMatchObject({
    code: 'rate_limited',
    message: 'The team has 1000 API keys, which is the most (apiKeysMax): delete one first',
  });
  await createApiKey(deps, theirs, 'of others');
  await createApiKey(deps, mine, 'more', null, 1001);
  const [first] = await listTeamKeys(db, mine);
  await db
    .updateTable('api_keys')
    .set({ name: listedKeyName })
    .where('key_id', '=', first?.key.keyId ?? '')
    .execute();
  await createApiKey(deps, mine, 'one more', null, 1001);
});

test('keys are listed the oldest first, with their makers', async () => {
  await createApiKey(deps, mine, 'by the operator');
  const made = await createMembersKey(deps, mine, 'by Ada', ada.userId);
  expect(made.createdBy).toMatchObject({ name: 'Ada' });
  expect(await createMembersKey(deps, mine, 'by nobody', null)).toMatchObject({ createdBy: null });
  const keys = await listTeamKeys(db, mine);
  expect(keys.map(({ key, createdBy }) => [key.name, createdBy?.name])).toEqual([
    ['by the operator', undefined],
    ['by Ada', 'Ada'],
    ['by nobody', undefined],
  ]);
});

test('a user who is not an admin, or no longer one, makes no key', async () => {
  for (const userId of [bob.userId, newUuid()])
    await expect(createApiKey(deps, mine, 'k', userId)).rejects.toMatchObject({ code: 'forbidden' });
  expect(await names()).toEqual([]);
});

test('no key can take the name of keys that lists make, and those can’t be renamed', async () => {
  const { key } = await createApiKey(deps, mine, 'k');
  for (const refused of [
    () => createApiKey(deps, mine, listedKeyName),
    () => renameTeamKey(db, mine, key.keyId, listedKeyName),
  ])
    await expect(refused()).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining('GET /teams') });
  await expect(renameTeamKey(db, mine, await listed(), 'mine')).rejects.toMatchObject({ code: 'conflict' });
});

test('a key of the team is renamed and revoked, and no other team’s', async () => {
  const { key } = await createApiKey(deps, mine, 'k');
  await renameTeamKey(db, mine, key.keyId, 'renamed');
  expect(await names()).toEqual(['renamed']);
  const missing = { code: 'not_found', message: `API key "${key.keyId}" was not found` };
  await expect(renameTeamKey(db, theirs, key.keyId, 'x')).rejects.toMatchObject(missing);
  await expect(revokeTeamKey(deps, theirs, key.keyId)).rejects.toMatchObject(missing);
  await revokeTeamKey(deps, mine, key.keyId);
  await expect(revokeTeamKey(deps, mine, key.keyId)).rejects.toMatchObject(missing);
  for (const refused of [() => renameTeamKey(db, mine, 'none', 'x'), () => revokeTeamKey(deps, mine, 'none')])
    await expect(refused()).rejects.toMatchObject({ code: 'invalid' });
});

test('a revoked key is no longer known, even if it was used a moment ago', async () => {
  const { key } = await createApiKey(deps, mine, 'k');
  const { digest } = key;
  expect(await deps.credentials.apiKey(digest)).not.toBeNull();
  await revokeTeamKey(deps, mine, key.keyId);
  expect(await deps.credentials.apiKey(digest)).toBeNull();
});
