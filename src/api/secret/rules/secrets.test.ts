import { afterAll, beforeEach, expect, test } from 'bun:test';
import { openStore } from '../../database/database.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import {
  createSecret,
  listSecretsOf,
  readSecret,
  removeSecret,
  secretPageMax,
  secretValue,
  updateSecret,
} from './secrets.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const seed = new Uint8Array(32).fill(7);
let nowUs = 1;
const deps = { db, seed, clock: () => nowUs };
const [mine, theirs] = [
  await createTeam(deps, { name: 'm', slug: 'm' }),
  await createTeam(deps, { name: 't', slug: 't' }),
];
beforeEach(async () => {
  await db.deleteFrom('secrets').execute();
  nowUs++;
});

type Input = Parameters<typeof createSecret>[2];
const create = (change: Partial<Input> = {}, most?: number) =>
  createSecret(deps, mine, { name: 'key', value: 'v', ...change }, most);
const entries = (count: number, text = 'v') =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`.padEnd(4), text]));

test('a secret is found by its ID and by its name, upper or lower case, by its own team', async () => {
  const { secretId, sealedValue } = await create({ name: ' Api_Key-1 ', value: 'hush', metadata: { a: 'b' } });
  expect(sealedValue).not.toContain('hush');
  for (const name of [secretId, 'api_key-1', ' API_KEY-1 ']) {
    const found = await readSecret(db, mine, name);
    expect(found).toMatchObject({ secretId, name: 'api_key-1', currentVersion: 1, metadata: { a: 'b' } });
    expect(secretValue(seed, found)).toBe('hush');
  }
  await expect(readSecret(db, theirs, secretId)).rejects.toMatchObject({ code: 'not_found' });
});

test.each(['a', 'x'.repeat(128), '0_-'])('a secret can be called %s', async name => {
  expect(await create({ name })).toMatchObject({ name });
});

test.each(['', ' ', 'a b', 'ä', 'a.b', 'x'.repeat(129), 'sec_a', 'SEC_a'])('no secret is called %p', async name => {
  await expect(create({ name })).rejects.toMatchObject({
    code: 'invalid',
    message: 'name: must be 1 to 128 letters, digits, "-" and "_", and not begin with "sec_"',
  });
});

const most: [string, Partial<Input>][] = [
  ['the longest value', { value: 'x'.repeat(65_536) }],
  ['the most metadata', { metadata: entries(32) }],
  ['the longest key', { metadata: { ['k'.repeat(128)]: '' } }],
  ['the longest text', { metadata: { k: 'x'.repeat(1024) } }],
  ['as much metadata as may be', { metadata: entries(8, 'x'.repeat(1020)) }],
];

test.each(most)('a secret has %s', async (_, input) => {
  const secret = await create(input);
  await updateSecret(deps, mine, secret.secretId, { value: 'v', ...input });
});

const beyond: [string, Partial<Input>, string][] = [
  ['a longer value', { value: 'ä'.repeat(32_769) }, 'value: longer than 65536 bytes'],
  ['more metadata', { metadata: entries(33) }, 'metadata: more than 32 entries'],
  ['a longer key', { metadata: { ['k'.repeat(129)]: '' } }, 'metadata: a key is longer than 128 bytes'],
  ['a longer text', { metadata: { k: 'x'.repeat(1025) } }, 'metadata["k"]: longer than 1024 bytes'],
  [
    'metadata that is longer in all',
    { metadata: { ...entries(8, 'x'.repeat(1020)), z: '' } },
    'metadata: 8193 bytes in',
  ],
];

test.each(beyond)('a secret with %s is refused, and so is a change to it', async (_, input, why) => {
  await expect(create(input)).rejects.toThrow(why);
  await create();
  await expect(updateSecret(deps, mine, 'key', { value: 'v', ...input })).rejects.toThrow(why);
});

test('a team has each name once, and its maximum of secrets', async () => {
  await create({ name: 'a' }, 2);
  await expect(create({ name: 'A' }, 2)).rejects.toMatchObject({ code: 'conflict' });
  await create({ name: 'b' }, 2);
  await expect(create({ name: 'c' }, 2)).rejects.toMatchObject({ code: 'rate_limited' });
  // Another team has secrets of its own.
  expect(await createSecret(deps, theirs, { name: 'a', value: 'v' }, 2)).toMatchObject({ teamId: theirs.teamId });
});

test('a change is a new version, and keeps the metadata that it does not name', async () => {
  const { secretId } = await create({ metadata: { a: 'b' } });
  nowUs = 50;
  const changed = await updateSecret(deps, mine, 'KEY', { value: 'new' });
  expect(changed).toMatchObject({ secretId, currentVersion: 2, metadata: { a: 'b' }, updatedAtUs: 50 });
  expect(secretValue(seed, changed)).toBe('new');
  expect(await updateSecret(deps, mine, secretId, { value: 'new', metadata: {} })).toMatchObject({ metadata: {} });
});

test('changes at the same time are made one after the other', async () => {
  await create();
  await Promise.all(['a', 'b', 'c'].map(value => updateSecret(deps, mine, 'key', { value })));
  expect((await readSecret(db, mine, 'key')).currentVersion).toBe(4);
});

test('a change is given up after a few tries if others are always ahead of it', async () => {
  const { secretId } = await create();
  let tries = 0;
  // Happens between reading the secret and changing it.
  const othersChange = () => {
    tries++;
    const next = { current_version: tries + 1 };
    void db.updateTable('secrets').set(next).where('secret_id', '=', secretId).execute();
    return nowUs;
  };
  await expect(updateSecret({ ...deps, clock: othersChange }, mine, 'key', { value: 'v' })).rejects.toMatchObject({
    code: 'conflict',
    message: 'Secret "key" is being changed by others: try again',
  });
  expect(tries).toBe(5);
});

test('of two callers who remove a secret at the same time, one has removed it', async () => {
  await create();
  const outcomes = await Promise.allSettled([removeSecret(db, mine, 'key'), removeSecret(db, mine, 'key')]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
});

test('a removed secret is gone, and nobody else’s is removed', async () => {
  await create();
  await expect(removeSecret(db, theirs, 'key')).rejects.toMatchObject({ code: 'not_found' });
  await removeSecret(db, mine, 'key');
  for (const again of [() => removeSecret(db, mine, 'key'), () => updateSecret(deps, mine, 'key', { value: 'v' })])
    await expect(again()).rejects.toMatchObject({ code: 'not_found', message: 'Secret "key" was not found' });
});

test('secrets are listed by pages, the newest first, by default a hundred', async () => {
  const names = Array.from({ length: secretPageMax + 1 }, (_, index) => `s${index}`);
  for (const name of names) {
    nowUs++;
    await create({ name });
  }
  const first = await listSecretsOf(db, mine, {});
  expect(first.items.map(({ name }) => name)).toEqual(names.slice(1).toReversed());
  const rest = await listSecretsOf(db, mine, { nextToken: first.nextToken ?? '' });
  expect(rest).toMatchObject({ items: [{ name: 's0' }], nextToken: null });
  expect((await listSecretsOf(db, mine, { limit: 2 })).items).toHaveLength(2);
  expect(first.items).toHaveLength(100);
});
