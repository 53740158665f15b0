import { afterAll, beforeEach, expect, spyOn, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import { openStore } from '../../database/database.ts';
import { enterReplica } from '../../replica/store/replicas.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { insertVolume } from '../../volume/store/volumes.ts';
import { type BlobKind, blobKinds } from '../record.ts';
import type { ClusterStore } from '../rules/cluster-store.ts';
import { beginBlob, finishBlob, referTo } from '../store/blobs.ts';
import { collectBlobs, giveUpUploads, storeKeeping, sweepObjects } from './collect.ts';

const { db, ...database } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  for (const table of ['blob_refs', 'blobs', 'replicas', 'database_timeline'] as const)
    await db.deleteFrom(table).execute();
});
const it = { nowUs: 1e15 };
const clock = () => it.nowUs;
const secondUs = 1_000_000;
const dayUs = 24 * 3600 * secondUs;

/** A process that looks after a store with these objects, and what it did in the store. */
function keeper(objects: { key: string; blobId: string; changedAtMs: number }[] = []) {
  const done: string[] = [];
  const logged: string[] = [];
  const state = { isUsable: true, sending: new Set<string>(), failing: false };
  const store = {
    get isUsable() {
      return state.isUsable;
    },
    isSending: (blobId: string) => state.sending.has(blobId),
    examine: async () => void done.push('examine'),
    async delete({ blobId }: { blobId: string }) {
      if (state.failing) throw new AtollError('unavailable', 'the store is away');
      done.push(`delete ${blobId}`);
    },
    deleteObject: async (key: string) => void done.push(`delete object ${key}`),
    async *objects() {
      done.push('list');
      yield* objects;
    },
  } as unknown as ClusterStore;
  const deps = { clock, db, busy: { replicaId: 'here' }, store, log: createLog('info', line => logged.push(line)) };
  return { deps, done, logged, state };
}

/** A blob last changed `agoUs` ago; `replicaId` makes it one that this process is uploading. */
async function blob(kind: BlobKind = 'layer', agoUs = 0, replicaId?: string): Promise<string> {
  const blobId = newUuid();
  const made = { blobId, kind, name: blobId, bytes: 1, sealedKey: null, facts: null };
  expect(await beginBlob(db, made, { replicaId: replicaId ?? 'here', nowUs: it.nowUs - agoUs })).toBe(true);
  if (replicaId === undefined) expect(await finishBlob(db, blobId, null, it.nowUs - agoUs)).toBe(true);
  return blobId;
}
const stateOf = async (blobId: string) =>
  (await db.selectFrom('blobs').select('state').where('blob_id', '=', blobId).executeTakeFirst())?.state;

test('uploads that nobody works on are given up', async () => {
  await enterReplica(db, { replicaId: 'there', name: 'there' }, it.nowUs + 1);
  const [over, there, own, sending] = [
    await blob('pause', 0, 'a process that is over'),
    await blob('pause', 0, 'there'),
    await blob('pause', 0, 'here'),
    await blob('pause', 0, 'here'),
  ];
  const { deps, state, done } = keeper();
  state.sending.add(sending);
  await giveUpUploads(deps);
  const states = await Promise.all([over, there, own, sending].map(stateOf));
  expect(states).toEqual(['deleting', 'uploading', 'deleting', 'uploading']);
  expect(done).toEqual([]);
});

const graceUs: Record<BlobKind, number> = {
  ...{ layer: dayUs, pause: 900 * secondUs, snapshot: 900 * secondUs, upload: 7 * dayUs },
  ...{ log: 7 * dayUs, volume: 900 * secondUs },
};

test.each(blobKinds)('a %s that nobody needs stays for its time', async kind => {
  const { deps, done, logged } = keeper();
  const [stays, goes] = [await blob(kind, graceUs[kind]), await blob(kind, graceUs[kind] + 1)];
  await collectBlobs(deps);
  expect([await stateOf(stays), done]).toEqual(['stored', [`delete ${goes}`]]);
  // The record that a pause was there stays for a while.
  expect(await stateOf(goes)).toBe(kind === 'pause' ? 'gone' : undefined);
  expect(logged).toEqual([expect.stringContaining('"blobs":1')]);
  await collectBlobs(deps);
  expect(logged).toHaveLength(1);
});

test('what somebody needs stays, as long as its owner exists', async () => {
  const { teamId } = await createTeam({ db, clock }, { name: 'T', slug: 't' });
  const volumeId = newUuid();
  await insertVolume(db, { volumeId, teamId, nodeId: 'n', name: 'v', sizeMiB: 1, createdAtUs: 1 }, 9);
  const copy = { copy_id: 'copy', copied_at_us: 1 };
  await db.updateTable('volumes').set(copy).where('volume_id', '=', volumeId).execute();
  const kept = await blob('volume', dayUs);
  await referTo(db, kept, { kind: 'volume', id: 'copy' }, it.nowUs - dayUs);
  const loose: string[] = [];
  for (const kind of ['build', 'execution', 'volume'] as const) {
    const blobId = await blob('volume', dayUs);
    await referTo(db, blobId, { kind, id: 'nobody' }, it.nowUs - dayUs);
    loose.push(blobId);
  }
  const { deps, done } = keeper();
  await collectBlobs(deps);
  expect(await stateOf(kept)).toBe('stored');
  expect(done.toSorted()).toEqual(loose.map(blobId => `delete ${blobId}`).toSorted());
  expect(await db.selectFrom('blob_refs').select('blob_id').execute()).toEqual([{ blob_id: kept }]);
});

test('a blob whose objects can’t be deleted now is deleted later', async () => {
  const { deps, state, logged } = keeper();
  const blobId = await blob('layer', 2 * dayUs);
  state.failing = true;
  await expect(collectBlobs(deps)).rejects.toThrow('the store is away');
  expect([await stateOf(blobId), logged]).toEqual(['deleting', []]);
  state.failing = false;
  await collectBlobs(deps);
  expect(await stateOf(blobId)).toBeUndefined();
});

test('a hundred blobs are deleted at a time', async () => {
  for (let count = 0; count < 101; count++) await blob('layer', 2 * dayUs);
  const { deps, done } = keeper();
  await collectBlobs(deps);
  expect(done).toHaveLength(100);
  await collectBlobs(deps);
  expect(done).toHaveLength(101);
});

test('the record that a pause was there is removed after thirty days', async () => {
  const { deps } = keeper();
  const blobId = await blob('pause', dayUs);
  await collectBlobs(deps);
  it.nowUs += 30 * dayUs;
  await collectBlobs(deps);
  expect(await stateOf(blobId)).toBe('gone');
  it.nowUs += 1;
  await collectBlobs(deps);
  expect(await stateOf(blobId)).toBeUndefined();
});

test('objects without a blob are removed after two days, however many', async () => {
  const known = await blob();
  const gone = await blob('pause', dayUs);
  await db.updateTable('blobs').set({ state: 'gone' }).where('blob_id', '=', gone).execute();
  const hourMs = 3_600_000;
  const object = (key: string, blobId: string, agoMs = 49 * hourMs) => ({
    key,
    blobId,
    changedAtMs: Date.now() - agoMs,
  });
  const many = Array.from({ length: 401 }, (_, index) => object(`k${index}`, `unknown ${index % 7}`));
  const { deps, done, logged } = keeper([
    ...[object('known', known), object('gone', gone), object('new', 'unknown', 47 * hourMs)],
    ...many,
  ]);
  const queries = spyOn(db, 'selectFrom');
  await sweepObjects(deps);
  // One query covers two hundred of them.
  expect(queries).toHaveBeenCalledTimes(3);
  queries.mockRestore();
  expect(done).toEqual(['list', ...['gone', ...many.map(({ key }) => key)].map(key => `delete object ${key}`)]);
  expect(logged).toEqual([expect.stringContaining('"objects":402')]);
  const nothing = keeper([object('known', known)]);
  await sweepObjects(nothing.deps);
  expect([nothing.done, nothing.logged]).toEqual([['list'], []]);
});

test('a round checks the store first, collects if it is usable, and lists it every six hours', async () => {
  using now = spyOn(performance, 'now').mockReturnValue(1000);
  const { deps, done, state } = keeper();
  const left = await blob('pause', 0, 'here');
  const round = storeKeeping(deps);
  state.isUsable = false;
  await round();
  expect([done, await stateOf(left)]).toEqual([['examine'], 'deleting']);
  state.isUsable = true;
  // A database that lacks rows would cause their objects to be deleted.
  const history = { place: 1, system_id: 's', timeline: 2, changed_at_us: it.nowUs };
  await db.insertInto('database_timeline').values(history).execute();
  now.mockReturnValue(1000 + 7 * 3_600_000);
  await round();
  expect(done).toEqual(['examine', 'examine']);
  await db.deleteFrom('database_timeline').execute();
  now.mockReturnValue(1000 + 6 * 3_600_000 - 1);
  await round();
  expect(done.slice(2)).toEqual(['examine', `delete ${left}`]);
  now.mockReturnValue(1000 + 6 * 3_600_000);
  for (let rounds = 0; rounds < 2; rounds++) await round();
  expect(done.slice(4)).toEqual(['examine', 'list', 'examine']);
});
