import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { silentLog } from '../../../base/telemetry/log.ts';
import type { BlobStore } from '../../../protocol/blob.ts';
import type { PauseFacts } from '../../../protocol/cluster.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { openStore } from '../../database/database.ts';
import { beginBlob, findBlob } from '../store/blobs.ts';
import { ClusterStore } from './cluster-store.ts';
import { DurableSnapshots } from './snapshots.ts';

const { db, ...database } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => database[Symbol.asyncDispose]());
const clock = () => 1e15;
const content = 'memory';
const keyCharacters = 43;
const facts: PauseFacts = {
  ...{ kept: 'memory', sizeBytes: keyCharacters + content.length, layers: [], driver: 'crun' },
  memory: {} as PauseFacts['memory'],
};

/** The machines `a`, which has the memory of a snapshot, and `b`, and a store in memory. */
async function scene(presign: BlobStore['presign'] = null) {
  const snapshotId = newUuid();
  const objects = new Map<string, Uint8Array>();
  const blobs = {
    ...{ place: 'memory', presign },
    put: async (key: string, bytes: Uint8Array) => void objects.set(key, bytes),
    get: async (key: string) => objects.get(key) ?? new Uint8Array(),
    async *list(prefix: string) {
      for (const [key, { length }] of objects) if (key.startsWith(prefix)) yield { key, bytes: length, changedAtMs: 0 };
    },
  } as unknown as BlobStore;
  const told: string[] = [];
  const state = { sent: '', taken: '', isFull: false };
  const links = {
    async *read() {
      yield Buffer.from(state.sent);
    },
    async write(_: number, bytes: AsyncIterable<Uint8Array>) {
      if (state.isFull) throw new AtollError('no_space', 'it is full');
      for await (const part of bytes) state.taken += Buffer.from(part).toString();
    },
  };
  const machine = (name: string) => {
    const has = new Set<string>();
    const take = (key: string, text: string) => {
      expect(key).toHaveLength(keyCharacters);
      expect(text).toBe(key + content);
      has.add(snapshotId);
    };
    let expected = '';
    const service = {
      node: { listSnapshots: async () => [...has].map(id => ({ snapshotId: id, takenAtMs: 1 })) },
      snapshots: {
        async describe(id: string) {
          if (!has.has(id)) throw new AtollError('not_found', `${name} does not have it`);
          return facts;
        },
        async openRead(_: string, key: string) {
          state.sent = key + content;
          return { sizeBytes: facts.sizeBytes, descriptor: 0 };
        },
        async openWrite(_: string, key: string, sizeBytes: number) {
          told.push(`${name}: ${sizeBytes} bytes`);
          [expected, state.taken] = [key, ''];
          return { writeId: 'w', descriptor: 1 };
        },
        keepWrite: async () => take(expected, state.taken),
        dropWrite: async (writeId: string) => void told.push(`${name}: drop ${writeId}`),
      },
      transfers: {
        sendSnapshot: async (_: string, key: string, [url = '']: string[]) =>
          void objects.set(url, Buffer.from(key + content)),
        async receiveSnapshot(_: string, key: string, sizeBytes: number, [url = '']: string[]) {
          told.push(`${name}: ${sizeBytes} bytes by URL`);
          take(key, Buffer.from(objects.get(url) ?? []).toString());
        },
      },
    };
    return { has, service };
  };
  const machines = { a: machine('a'), b: machine('b') };
  machines.a.has.add(snapshotId);
  const trouble: { now: AtollError | null } = { now: null };
  const check = async () => {
    if (trouble.now) throw trouble.now;
  };
  const store = await ClusterStore.open({ blobs, db, clock, links, replicaId: 'here', log: silentLog, check });
  const known = (nodeId: string) => ({ machine: machines[nodeId as 'a' | 'b'].service });
  const snapshots = new DurableSnapshots({
    ...{ db, clock, store, seed: new Uint8Array(32).fill(1), machines: { known } as unknown as Machines },
  });
  const owners = async () => {
    const blob = await findBlob(db, 'snapshot', snapshotId);
    const refs = db
      .selectFrom('blob_refs')
      .select('owner_id')
      .where('blob_id', '=', blob?.blobId ?? '');
    return (await refs.execute()).map(ref => ref.owner_id);
  };
  return { snapshotId, objects, told, state, trouble, store, snapshots, owners, ...machines };
}

const owner = (id: string) => ({ kind: 'build' as const, id });

for (const [how, presign] of [
  ['by this process', null],
  ['by URLs', (key: string) => key],
] as const)
  test(`the memory of a snapshot is stored, encrypted, and brought to another machine once: ${how}`, async () => {
    const { snapshotId, snapshots, owners, objects, told, b } = await scene(presign);
    expect(await snapshots.facts(snapshotId)).toBeNull();
    await snapshots.store(snapshotId, 'a', owner('one'));
    expect(await snapshots.facts(snapshotId)).toEqual(facts);
    // Another build needs it too; it is there already.
    await snapshots.store(snapshotId, 'a', owner('two'));
    expect([(await owners()).toSorted(), objects.size]).toEqual([['one', 'two'], 1]);
    await Promise.all([snapshots.bring(snapshotId, 'b'), snapshots.bring(snapshotId, 'b')]);
    await snapshots.bring(snapshotId, 'b');
    expect([b.has.has(snapshotId), told]).toEqual([true, [`b: ${facts.sizeBytes} bytes${presign ? ' by URL' : ''}`]]);
  });

test('memory without an owner is stored once, and memory that its machine lacks is not', async () => {
  const { snapshotId, snapshots, owners } = await scene();
  await snapshots.store(snapshotId, 'a', null);
  expect(await owners()).toEqual([]);
  await expect(snapshots.store(snapshotId, 'a', null)).rejects.toMatchObject({ code: 'conflict' });
  await expect(snapshots.store(newUuid(), 'a', null)).rejects.toMatchObject({ code: 'not_found' });
});

test('incompletely stored memory can’t be fetched', async () => {
  const { snapshotId, snapshots } = await scene();
  const other = { blobId: newUuid(), kind: 'snapshot', name: snapshotId, bytes: 1, sealedKey: 'k', facts } as const;
  await beginBlob(db, other, { replicaId: 'there', nowUs: 1 });
  expect(await snapshots.facts(snapshotId)).toBeNull();
  await expect(snapshots.store(snapshotId, 'a', owner('one'))).rejects.toMatchObject({ code: 'conflict' });
  for (const change of [{}, { state: 'stored', sealed_key: null }]) {
    if ('state' in change)
      await db
        .updateTable('blobs')
        .set(change as never)
        .where('name', '=', snapshotId)
        .execute();
    await expect(snapshots.bring(snapshotId, 'b')).rejects.toMatchObject({ code: 'not_found' });
  }
});

test('memory that a machine can’t take is dropped there', async () => {
  const { snapshotId, snapshots, state, told } = await scene();
  await snapshots.store(snapshotId, 'a', owner('one'));
  state.isFull = true;
  await expect(snapshots.bring(snapshotId, 'b')).rejects.toThrow('it is full');
  expect(told.at(-1)).toBe('b: drop w');
});

test('whether the store can be used is known', async () => {
  const { snapshots, store, trouble } = await scene();
  expect(snapshots.isUsable).toBe(true);
  trouble.now = new AtollError('unavailable', 'away');
  await store.examine();
  expect(snapshots.isUsable).toBe(false);
});
