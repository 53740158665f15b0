import { afterAll, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { createLog, silentLog } from '../../../base/telemetry/log.ts';
import type { BlobStore } from '../../../protocol/blob.ts';
import type { UploadRef } from '../../../protocol/upload.ts';
import type { KnownMachine, Machines } from '../../cluster/rules/machines.ts';
import { openStore } from '../../database/database.ts';
import { beginBlob, findBlob } from '../store/blobs.ts';
import { ClusterStore } from './cluster-store.ts';
import { SharedUploads } from './uploads.ts';

const { db, ...database } = await openStore({ kind: 'sqlite', path: ':memory:' });
const folder = mkdtempSync(join(tmpdir(), 'atoll-shared-uploads-'));
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => void (await db.deleteFrom('blobs').execute()));
const it = { nowUs: 1e15 };
const clock = () => it.nowUs;
const upload: UploadRef = { teamId: 'team', hash: 'hash' };
const content = 'an archive';
const path = join(folder, 'archive');
writeFileSync(path, content);
const file = { path, sizeBytes: content.length };

type Scene = { machines?: string[]; withStore?: boolean; presign?: BlobStore['presign'] };

/** A process that shares uploads, a store in memory, and machines that may have some uploads. */
async function scene({ machines: names = ['a', 'b'], withStore = true, presign = null }: Scene = {}) {
  const objects = new Map<string, Uint8Array>();
  const state = { storeFails: false, closed: new Set<number>() };
  const working = () => {
    if (state.storeFails) throw new AtollError('unavailable', 'the store is away');
  };
  const blobs = {
    ...{ place: 'memory', presign },
    async put(key: string, bytes: Uint8Array) {
      working();
      objects.set(key, bytes);
    },
    async get(key: string) {
      working();
      return objects.get(key) ?? new Uint8Array();
    },
  } as unknown as BlobStore;
  const writes = new Map<number, (text: string) => void>();
  const reads = new Map<number, string>();
  const links = {
    read(descriptor: number) {
      const source = (async function* () {
        yield Buffer.from(reads.get(descriptor) ?? '');
      })();
      const end = source.return.bind(source);
      // Like the real one, it is closed even where nobody has begun to read.
      return Object.assign(source, { return: (value: undefined) => (state.closed.add(descriptor), end(value)) });
    },
    async write(descriptor: number, bytes: AsyncIterable<Uint8Array>) {
      const parts: Uint8Array[] = [];
      for await (const part of bytes) parts.push(part);
      writes.get(descriptor)?.(Buffer.concat(parts).toString());
    },
  };
  const told: string[] = [];
  const machines = names.map(name => {
    const has = new Map<string, string>();
    const it = { has, isAway: false, isFull: false };
    let draft = '';
    const uploads = {
      async missing(asked: UploadRef[]) {
        if (it.isAway) throw new AtollError('unavailable', 'it does not answer');
        return asked.filter(({ hash }) => !has.has(hash));
      },
      async openRead({ hash }: UploadRef) {
        const descriptor = reads.size;
        reads.set(descriptor, has.get(hash) ?? '');
        return { sizeBytes: has.get(hash)?.length ?? 0, descriptor };
      },
      async openWrite({ hash }: UploadRef, sizeBytes: number) {
        if (it.isFull) throw new AtollError('no_space', `${name} is full`);
        told.push(`${name}: ${hash} of ${sizeBytes}`);
        const descriptor = writes.size;
        writes.set(descriptor, text => void (draft = text));
        return { writeId: hash, descriptor };
      },
      async keepWrite(writeId: string, sizeBytes: number) {
        expect(draft).toHaveLength(sizeBytes);
        has.set(writeId, draft);
      },
      dropWrite: async () => void told.push(`${name}: drop`),
    };
    const transfers = {
      async receiveUpload({ hash }: UploadRef, sizeBytes: number, urls: string[]) {
        working();
        told.push(`${name}: ${hash} of ${sizeBytes} by ${urls.length} URLs`);
        has.set(hash, Buffer.from(objects.get(urls[0] ?? '') ?? []).toString());
      },
    };
    return Object.assign(it, { node: { nodeId: name }, machine: { uploads, transfers } });
  });
  const check = async () => working();
  const options = { blobs, db, clock, links, replicaId: 'here', log: silentLog, check };
  const store = withStore ? await ClusterStore.open(options) : null;
  const logged: string[] = [];
  const shared = new SharedUploads({
    ...{ db, clock, links, store, log: createLog('warn', line => logged.push(line)) },
    machines: { usable: () => machines } as unknown as Machines,
  });
  const known = (index: number) => machines[index] as unknown as KnownMachine;
  return { shared, machines, objects, state, told, logged, known, store };
}

const blobOf = () => findBlob(db, 'upload', 'team/hash');

for (const [how, presign] of [
  ['by this process', null],
  ['by URLs', (key: string) => key],
] as const)
  test(`an archive is put into the store, and brought to the machine that builds: ${how}`, async () => {
    const { shared, machines, objects, told, known, logged } = await scene({ presign });
    await shared.keep(upload, file);
    expect([...objects.values()].map(bytes => Buffer.from(bytes).toString())).toEqual([content]);
    expect(await blobOf()).toMatchObject({ state: 'stored', bytes: content.length, sealedKey: null });
    await shared.ensure(known(1), [upload]);
    expect([machines[0]?.has.size, machines[1]?.has.get('hash')]).toEqual([0, content]);
    expect(told).toEqual([`b: hash of 10${presign ? ' by 1 URLs' : ''}`]);
    // It is there already: nothing is brought.
    await shared.ensure(known(1), [upload]);
    await shared.ensure(known(0), []);
    expect([told.length, logged]).toEqual([1, []]);
  });

test('an archive that is there is not sent again, and is kept for longer', async () => {
  const { shared, objects } = await scene();
  expect(await shared.has(upload)).toBe(false);
  await shared.keep(upload, file);
  const first = await blobOf();
  it.nowUs += 5;
  expect(await shared.has(upload)).toBe(true);
  expect((await blobOf())?.changedAtUs).toBe(it.nowUs);
  it.nowUs += 5;
  await shared.keep(upload, file);
  expect(await blobOf()).toEqual({ ...first, changedAtUs: it.nowUs } as never);
  expect(objects.size).toBe(1);
});

test('an archive of another size replaces it', async () => {
  const { shared, objects } = await scene();
  await shared.keep(upload, file);
  const first = await blobOf();
  writeFileSync(join(folder, 'longer'), 'a longer archive');
  await shared.keep(upload, { path: join(folder, 'longer'), sizeBytes: 16 });
  expect(await blobOf()).toMatchObject({ state: 'stored', bytes: 16 });
  const before = await db
    .selectFrom('blobs')
    .select('state')
    .where('blob_id', '=', first?.blobId ?? '')
    .execute();
  expect([before, objects.size]).toEqual([[{ state: 'deleting' }], 2]);
});

test('if the store fails, or somebody else uploads the same, an archive goes to a machine', async () => {
  const failing = await scene();
  failing.state.storeFails = true;
  await failing.shared.keep(upload, file);
  expect([failing.machines[0]?.has.get('hash'), await blobOf()]).toEqual([content, null]);
  expect(failing.logged).toEqual([expect.stringContaining('the store is away')]);
  // A store known to fail is not tried.
  await failing.store?.examine();
  await failing.shared.keep(upload, file);
  expect(failing.logged).toHaveLength(1);
  expect(await failing.shared.has(upload)).toBe(true);

  const same = await scene();
  const other = {
    blobId: newUuid(),
    kind: 'upload',
    name: 'team/hash',
    bytes: 1,
    sealedKey: null,
    facts: null,
  } as const;
  await beginBlob(db, other, { replicaId: 'there', nowUs: 1 });
  await same.shared.keep(upload, file);
  expect(same.logged).toEqual([expect.stringContaining('The same files are being uploaded')]);
  expect(same.machines[0]?.has.get('hash')).toBe(content);
});

test('without a store an archive is on a machine, and another one gets it from there', async () => {
  const { shared, machines, known, state, logged, told } = await scene({ withStore: false, machines: ['a', 'b', 'c'] });
  await shared.keep(upload, file);
  expect(machines.map(({ has }) => has.size)).toEqual([1, 0, 0]);
  expect(await shared.has(upload)).toBe(true);
  await shared.ensure(known(2), [upload]);
  expect(machines[2]?.has.get('hash')).toBe(content);
  expect([state.closed.size, logged]).toEqual([1, []]);
  Object.assign(machines[1] ?? {}, { isFull: true });
  await expect(shared.ensure(known(1), [upload])).rejects.toThrow('b is full');
  expect(state.closed.size).toBe(2);
  expect(told).toEqual(['a: hash of 10', 'c: hash of 10']);
  const none = await scene({ withStore: false, machines: [] });
  await expect(none.shared.keep(upload, file)).rejects.toMatchObject({ code: 'unavailable' });
});

test('an archive that the store can’t give comes from a machine, else it must be uploaded again', async () => {
  const { shared, machines, known, state, logged } = await scene({ machines: ['a', 'b', 'c'] });
  await shared.keep(upload, file);
  state.storeFails = true;
  machines[1]?.has.set('hash', content);
  Object.assign(machines[0] ?? {}, { isAway: true });
  await shared.ensure(known(2), [upload]);
  expect(machines[2]?.has.get('hash')).toBe(content);
  expect(logged).toEqual([expect.stringContaining('could not be had from the store')]);
  for (const { has } of machines) has.clear();
  await expect(shared.ensure(known(2), [upload])).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('The uploaded files hash are not in reach'),
  });
});

test('a team’s archives in the store are listed, and can be removed', async () => {
  const { shared } = await scene();
  await shared.keep(upload, file);
  await shared.keep({ ...upload, teamId: 'another' }, file);
  it.nowUs += 7_000_000;
  const [one, ...more] = await shared.ofTeam('team');
  expect([one?.sizeBytes, more]).toEqual([content.length, []]);
  const agoMs = Date.now() - (one?.usedMs ?? 0);
  expect(agoMs).toBeGreaterThanOrEqual(7000);
  expect(agoMs).toBeLessThan(60_000);
  await one?.remove();
  expect([await blobOf(), await shared.ofTeam('team')]).toEqual([null, []]);
  expect(await (await scene({ withStore: false })).shared.ofTeam('another')).toEqual([]);
});
