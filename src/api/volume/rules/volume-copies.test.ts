import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { createLog, silentLog } from '../../../base/telemetry/log.ts';
import type { BlobStore } from '../../../protocol/blob.ts';
import type { Machine } from '../../../protocol/cluster.ts';
import { ClusterStore } from '../../blob/rules/cluster-store.ts';
import { findBlob } from '../../blob/store/blobs.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { openStore } from '../../database/database.ts';
import { enterReplica } from '../../replica/store/replicas.ts';
import { defaultOptions, type SandboxRecord } from '../../sandbox/record.ts';
import { insertSandbox } from '../../sandbox/store/create.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { recordVolumeRemoval, volumeRemovalsOn } from '../store/removals.ts';
import { deleteVolume, findVolume, insertVolume } from '../store/volumes.ts';
import { VolumeCopies } from './volume-copies.ts';

const second = 1_000_000;
const { db, ...database } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => database[Symbol.asyncDispose]());
const clock = () => 1000 * second;
const { teamId } = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const objects = new Map<string, Uint8Array>();
/** The part of a store that copies need. */
const memory = {
  place: 'memory',
  put: async (key: string, bytes: Uint8Array) => void objects.set(key, bytes),
  get: async (key: string) => objects.get(key) ?? Promise.reject(new AtollError('not_found', key)),
  head: async (key: string) => objects.get(key)?.length ?? null,
  async *list(prefix: string) {
    for (const [key, { length }] of objects) if (key.startsWith(prefix)) yield { key, bytes: length, changedAtMs: 0 };
  },
} as unknown as BlobStore;
const seed = new Uint8Array(32).fill(1);

/** Can stop a step of a machine. */
type Before = (step: string) => Promise<void> | void;
type Exchange = Machine['volumeCopies'];

/** What each machine has of volumes, and the calls to it, in order. What it sends begins with the key. */
function twoMachines(before: Before) {
  const streams = new Map<number, { read?: string; write?(text: string): void }>();
  const descriptorOf = (stream: { read?: string; write?(text: string): void }) => {
    streams.set(streams.size, stream);
    return streams.size - 1;
  };
  const machine = (nodeId: string) => {
    const [has, fixed, drafts] = [new Map<string, string>(), new Map<string, string>(), new Map<string, () => void>()];
    const asked: string[] = [];
    const ask = async (step: string) => {
      asked.push(step);
      await before(`${nodeId} ${step}`);
    };
    const bytesOf = (fixedId: string, key: string) => `${key} ${has.get(fixed.get(fixedId) ?? '')}`;
    const taken = (volumeId: string, key: string, text: string) => {
      if (!text.startsWith(`${key} `)) throw new AtollError('invalid', 'it is encrypted with another key');
      has.set(volumeId, text.slice(key.length + 1));
    };
    const volumeCopies: Omit<Exchange, 'states'> = {
      async fix(volumeId, how) {
        await ask(how);
        const fixedId = newUuid();
        fixed.set(fixedId, volumeId);
        return { fixedId, sizeBytes: bytesOf(fixedId, 'x'.repeat(43)).length };
      },
      async openRead(fixedId, key) {
        await ask('openRead');
        const read = bytesOf(fixedId, key);
        return { sizeBytes: read.length, descriptor: descriptorOf({ read }) };
      },
      requireFixed: () => ask('requireFixed'),
      async release(fixedId) {
        fixed.delete(fixedId);
        await ask('release');
      },
      async openWrite(volumeId, key) {
        await ask('openWrite');
        const writeId = newUuid();
        const write = (text: string) => void drafts.set(writeId, () => taken(volumeId, key, text));
        return { writeId, descriptor: descriptorOf({ write }) };
      },
      async keepWrite(writeId) {
        await ask('keepWrite');
        drafts.get(writeId)?.();
      },
      dropWrite: () => ask('dropWrite'),
    };
    const transfers = {
      async sendVolume(fixedId: string, key: string, [url = '']: string[]) {
        await ask('sendVolume');
        await memory.put(url, Buffer.from(bytesOf(fixedId, key)));
      },
      async receiveVolume(volumeId: string, key: string, _: number, [url = '']: string[]) {
        await ask('receiveVolume');
        taken(volumeId, key, Buffer.from(await memory.get(url)).toString());
      },
    };
    const remove = async (volumeId: string) => {
      await ask('remove');
      has.delete(volumeId);
    };
    return { has, fixed, asked, machine: { volumeCopies, transfers }, protocol: { volumes: { remove } } };
  };
  const machines = { a: machine('a'), b: machine('b') };
  const known = (nodeId: string) => machines[nodeId as 'a' | 'b'];
  const carried = {
    async *read(descriptor: number) {
      yield Buffer.from(streams.get(descriptor)?.read ?? '');
    },
    async write(descriptor: number, bytes: AsyncIterable<Uint8Array>) {
      const parts: Uint8Array[] = [];
      for await (const part of bytes) parts.push(part);
      streams.get(descriptor)?.write?.(Buffer.concat(parts).toString());
    },
  };
  return { ...machines, carried, known, get: (nodeId: string) => known(nodeId).protocol };
}

type SceneOptions = { before?: Before; presign?: BlobStore['presign']; withoutStore?: boolean };

/** A process of control, two machines, and a volume on the first of them. */
async function scene({ before = () => {}, presign = null, withoutStore = false }: SceneOptions = {}) {
  const machines = twoMachines(before);
  const replicaId = newUuid();
  const trouble: { now: AtollError | null } = { now: null };
  const check = async () => {
    if (trouble.now) throw trouble.now;
  };
  const blobs = { ...memory, presign };
  const links = machines.carried;
  const store = await ClusterStore.open({ blobs, db, clock, links, replicaId, log: silentLog, check });
  const logged: string[] = [];
  const copies = new VolumeCopies({
    ...{ db, clock, seed, busy: { replicaId }, machines: machines as unknown as Machines },
    log: createLog('warn', line => logged.push(line)),
    store: withoutStore ? null : store,
  });
  const volumeId = newUuid();
  const made = { volumeId, teamId, nodeId: 'a', name: `name-${volumeId}`, sizeMiB: 64, createdAtUs: 0 };
  await insertVolume(db, made, 1000);
  machines.a.has.set(volumeId, 'content');
  const row = () => db.selectFrom('volumes').selectAll().where('volume_id', '=', volumeId).executeTakeFirstOrThrow();
  return {
    ...{ ...machines, copies, store, trouble, volumeId, replicaId, logged, row },
    volume: async () => (await findVolume(db, volumeId)) ?? Promise.reject(new Error('the volume is gone')),
    state: { volumeId, isInSandbox: false, changedAtMs: 5.25 },
    /** Recorded removals of this volume from a machine. */
    removals: async (nodeId: string) =>
      (await volumeRemovalsOn(db, nodeId)).filter(removal => removal.volumeId === volumeId).length,
    take: (other: string, movingTo: string | null = null) =>
      db
        .updateTable('volumes')
        .set({ replica_id: other, moving_to: movingTo })
        .where('volume_id', '=', volumeId)
        .execute(),
  };
}

/** A paused sandbox that has a volume. */
async function use(volumeId: string): Promise<void> {
  const sandbox: SandboxRecord = {
    ...{ ...defaultOptions, sandboxId: `of ${volumeId}`, executionId: 'e', teamId, nodeId: 'a' },
    ...{ state: 'paused', templateId: 't' },
    ...{ buildId: 'b', alias: null, agentVersion: '1', cpuCount: 1, memoryMiB: 1, diskMiB: 1, createdAtUs: 1 },
    ...{ startedAtUs: 1, endAtUs: 1, timeoutSeconds: 1, secure: true, kept: 'memory', agentUnresponsive: false },
    ...{ durability: 'node', nextExecutionId: null, nextNodeId: null, replicaId: null },
    volumeMounts: [{ volumeId, name: 'any', path: '/data' }],
  };
  expect(await insertSandbox(db, sandbox, { concurrentSandboxes: 100, sandboxes: 100 })).toBe('inserted');
}

const other = { replicaId: newUuid(), name: 'other' };
await enterReplica(db, other, clock() + second);
const worked = { code: 'conflict', message: expect.stringContaining('is being moved or copied'), retryAfterSeconds: 2 };
const atHome = { node_id: 'a', moving_to: null, replica_id: null };

/** Fails at one step; all others go on. */
const failingAt =
  (...steps: string[]): Before =>
  step => {
    if (steps.includes(step)) throw new AtollError('no_space', `${step} failed`);
  };

for (const [how, presign] of [
  ['by this process', null],
  ['by URLs', (key: string) => key],
] as const)
  test(`a copy is in the store, encrypted, and another machine makes the volume of it again: ${how}`, async () => {
    const { copies, volume, state, a, b, volumeId, row, removals } = await scene({ presign });
    await copies.copy(await volume(), state);
    const { copy } = await volume();
    expect(copy).toEqual({ copyId: expect.any(String), copiedAtUs: clock(), changeUs: 5250 });
    const blob = await findBlob(db, 'volume', copy?.copyId ?? '');
    expect(blob).toMatchObject({ state: 'stored', sealedKey: expect.any(String) });
    expect(
      await db
        .selectFrom('blob_refs')
        .select('owner_id')
        .where('blob_id', '=', blob?.blobId ?? '')
        .execute(),
    ).toEqual([{ owner_id: copy?.copyId ?? '' }]);
    expect(await row()).toMatchObject(atHome);
    expect([a.fixed.size, a.asked.at(-1)]).toEqual([0, 'release']);
    a.has.set(volumeId, 'written since');

    await copies.restore(await volume(), 'b');
    expect(b.has.get(volumeId)).toBe('content');
    expect(await row()).toMatchObject({ ...atHome, node_id: 'b' });
    // Its machine is away, and is not asked: what it has is removed when it is back.
    expect([a.has.get(volumeId), await removals('a'), await removals('b')]).toEqual(['written since', 1, 0]);
    expect(copies.isBusy(volumeId)).toBe(false);
  });

test('a volume moves to another machine, and is sealed until nothing of it is left on the first one', async () => {
  const { copies, volume, a, b, volumeId, row, removals, logged } = await scene();
  await copies.move(await volume(), 'b');
  expect([a.has.has(volumeId), b.has.get(volumeId)]).toEqual([false, 'content']);
  expect(await row()).toMatchObject({ ...atHome, node_id: 'b' });
  expect([await removals('a'), await removals('b')]).toEqual([0, 0]);
  expect(a.asked).toEqual(['seal', 'openRead', 'requireFixed', 'remove', 'release']);
  expect([a.fixed.size, copies.isBusy(volumeId), logged]).toEqual([0, false, []]);
});

test('leftovers that the first machine can’t remove now are removed later', async () => {
  const { copies, volume, a, volumeId, row, removals, logged } = await scene({ before: failingAt('a remove') });
  await copies.move(await volume(), 'b');
  expect(await row()).toMatchObject({ ...atHome, node_id: 'b' });
  expect([a.has.has(volumeId), await removals('a')]).toEqual([true, 1]);
  expect(logged).toEqual([expect.stringContaining('removed later')]);
});

test.each(['a seal', 'a openRead', 'a requireFixed', 'b openWrite', 'b keepWrite'])(
  'a move that fails at "%s" leaves the volume where it was',
  async step => {
    const { copies, volume, a, b, volumeId, row, removals } = await scene({ before: failingAt(step) });
    await expect(copies.move(await volume(), 'b')).rejects.toThrow(`${step} failed`);
    expect(await row()).toMatchObject(atHome);
    expect([a.has.get(volumeId), b.has.has(volumeId)]).toEqual(['content', false]);
    expect([await removals('a'), await removals('b')]).toEqual([0, 0]);
    expect([a.fixed.size, b.asked.at(-1), copies.isBusy(volumeId)]).toEqual([0, 'remove', false]);
  },
);

test('if a machine can’t be told to release a volume, nothing fails: what was fixed expires', async () => {
  const { copies, volume, state, row } = await scene({ before: failingAt('a release') });
  await copies.copy(await volume(), state);
  await copies.move(await volume(), 'b');
  expect(await row()).toMatchObject({ ...atHome, node_id: 'b' });
});

test('a failed copy releases the volume, which keeps its earlier copy', async () => {
  const { copies, volume, state, a, row, volumeId } = await scene({ before: failingAt('a openRead') });
  await expect(copies.copy(await volume(), state)).rejects.toThrow('a openRead failed');
  expect(await row()).toMatchObject({ ...atHome, copy_id: null });
  expect([a.fixed.size, a.asked.at(-1), copies.isBusy(volumeId)]).toEqual([0, 'release', false]);
});

test('one thing is done with a volume at a time', async () => {
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { copies, volume, state, volumeId, row, replicaId } = await scene({
    async before(step) {
      if (step !== 'a copy') return;
      begun.resolve();
      await go.promise;
    },
  });
  const first = copies.copy(await volume(), state);
  await begun.promise;
  expect(copies.isBusy(volumeId)).toBe(true);
  await expect(copies.copy(await volume(), state)).rejects.toMatchObject(worked);
  await expect(copies.move(await volume(), 'b')).rejects.toMatchObject(worked);
  // It belongs to this process, and was not left by a dead one.
  await copies.settle();
  expect(await row()).toMatchObject({ replica_id: replicaId });
  go.resolve();
  await first;
  expect(await volume()).toMatchObject({ copy: { changeUs: 5250 } });
});

test('nothing is done with a volume that another process works on', async () => {
  const { copies, volume, state, row, take, a } = await scene();
  await take(other.replicaId);
  await expect(copies.copy(await volume(), state)).rejects.toMatchObject(worked);
  await expect(copies.move(await volume(), 'b')).rejects.toMatchObject(worked);
  await copies.settle();
  expect(await row()).toMatchObject({ replica_id: other.replicaId });
  expect(a.asked).toEqual([]);
});

test('a volume that is in use, gone, or has leftovers elsewhere does not move, and the error says why', async () => {
  const { copies, volume, volumeId, a } = await scene();
  const { name } = await volume();
  const asked = await volume();
  const refused = (code: string, says: string) =>
    expect(copies.move(asked, 'b')).rejects.toMatchObject({ code, message: expect.stringContaining(says) });
  await use(volumeId);
  await refused('conflict', `A sandbox has the volume "${name}"`);
  await db.deleteFrom('sandbox_volumes').where('volume_id', '=', volumeId).execute();
  await recordVolumeRemoval(db, { volumeId, nodeId: 'c' }, clock());
  await refused('conflict', `Another machine has something left of the volume "${name}"`);
  await db.deleteFrom('volume_removals').where('volume_id', '=', volumeId).execute();
  await deleteVolume(db, asked, { shownMax: 1, nowUs: clock() });
  await refused('not_found', `Volume "${name}" is not there any more`);
  expect(a.asked).toEqual([]);
});

test('a move that another process has settled meanwhile does not count', async () => {
  const { copies, volume, row, b, volumeId, take, removals } = await scene({
    async before(step) {
      // The other process now moves the volume, and to the same machine.
      if (step === 'a requireFixed') await take(other.replicaId, 'b');
    },
  });
  await expect(copies.move(await volume(), 'b')).rejects.toMatchObject(worked);
  expect(await row()).toMatchObject({ node_id: 'a', moving_to: 'b', replica_id: other.replicaId });
  // What is there may be what the other process brings.
  expect([b.has.get(volumeId), await removals('b')]).toEqual(['content', 1]);
});

test('content that was moved to a machine after all stays there', async () => {
  const { copies, volume, b, volumeId, take } = await scene({
    async before(step) {
      if (step !== 'a requireFixed') return;
      await take(other.replicaId);
      await db.updateTable('volumes').set({ node_id: 'b' }).where('volume_id', '=', volumeId).execute();
    },
  });
  await expect(copies.move(await volume(), 'b')).rejects.toMatchObject(worked);
  expect(b.has.get(volumeId)).toBe('content');
});

test('the work of processes that are over is taken back', async () => {
  const { copies, row, take, b, volumeId, removals } = await scene();
  b.has.set(volumeId, 'half of it');
  await recordVolumeRemoval(db, { volumeId, nodeId: 'b' }, clock());
  await take('a process that is over', 'b');
  await copies.settle();
  expect(await row()).toMatchObject(atHome);
  expect([b.has.has(volumeId), await removals('b')]).toEqual([false, 0]);
  // A volume that was being copied has left nothing anywhere.
  await take('a process that is over');
  await copies.settle();
  expect(await row()).toMatchObject(atHome);
  expect(b.asked).toEqual(['remove']);
});

test('without a copy in the store nothing is restored', async () => {
  const { copies, volume, state, row, b } = await scene();
  const none = { code: 'precondition', message: expect.stringContaining('The store has no copy of the volume') };
  await expect(copies.restore(await volume(), 'b')).rejects.toMatchObject(none);
  await copies.copy(await volume(), state);
  const { copy } = await volume();
  for (const change of [{ sealed_key: null }, { state: 'deleting' as const }]) {
    await db
      .updateTable('blobs')
      .set(change as never)
      .where('name', '=', copy?.copyId ?? '')
      .execute();
    await expect(copies.restore(await volume(), 'b')).rejects.toMatchObject(none);
  }
  expect(await row()).toMatchObject(atHome);
  expect(b.asked).toEqual([]);
});

test('a restore that fails leaves the volume where it was', async () => {
  const { copies, volume, state, row, b, volumeId } = await scene({ before: failingAt('b keepWrite') });
  await copies.copy(await volume(), state);
  await expect(copies.restore(await volume(), 'b')).rejects.toThrow('b keepWrite failed');
  expect(await row()).toMatchObject(atHome);
  expect([b.asked, b.has.has(volumeId)]).toEqual([['openWrite', 'keepWrite', 'remove'], false]);
});

test('copies need a store that can be used', async () => {
  const without = await scene({ withoutStore: true });
  const needed = { code: 'precondition', message: expect.stringContaining('ATOLL_STORE') };
  expect(without.copies.areStored).toBe(false);
  await expect(without.copies.copy(await without.volume(), without.state)).rejects.toMatchObject(needed);
  await expect(without.copies.restore(await without.volume(), 'b')).rejects.toMatchObject(needed);

  const { copies, store, trouble, volume, state, row, b } = await scene();
  expect(copies.areStored).toBe(true);
  await copies.copy(await volume(), state);
  trouble.now = new AtollError('unavailable', 'the store is away');
  await store.examine();
  expect(copies.areStored).toBe(false);
  await expect(copies.restore(await volume(), 'b')).rejects.toBe(trouble.now);
  expect(b.asked).toEqual([]);
  expect(await row()).toMatchObject(atHome);
});
