import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'bun:test';
import { collectBlobs, giveUpUploads, storeKeeping, sweepObjects } from '../../../src/api/blob/reconcilers/collect.ts';
import { ClusterStore } from '../../../src/api/blob/rules/cluster-store.ts';
import { StoredLogs } from '../../../src/api/blob/rules/logs.ts';
import { abandonBlob, beginBlob, findBlob, referTo } from '../../../src/api/blob/store/blobs.ts';
import type { BlobOwner } from '../../../src/api/blob/record.ts';
import { openStore } from '../../../src/api/database/database.ts';
import { enterReplica, leaveReplica } from '../../../src/api/replica/store/replicas.ts';
import { defaultOptions } from '../../../src/api/sandbox/record.ts';
import { insertSandbox } from '../../../src/api/sandbox/store/create.ts';
import { deleteSandbox } from '../../../src/api/sandbox/store/state.ts';
import { createTeam } from '../../../src/api/team/rules/provision-team.ts';
import { AtollError } from '../../../src/base/error.ts';
import { newSandboxId, newUuid } from '../../../src/base/id.ts';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import { checkStore } from '../../../src/blob/check.ts';
import { directoryStore, prepareStoreDirectory } from '../../../src/blob/directory.ts';
import { partBytes, type BlobStore } from '../../../src/protocol/blob.ts';
import { onEachDatabase } from '../databases.ts';
import { until } from '../platform.ts';

// A cluster's store contains what the rows say, and nothing that anybody refers to is ever collected.

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
const grace = { layer: 1000, pause: 100, snapshot: 100, upload: 2000, log: 2000, volume: 100 };
const secondUs = 1_000_000;

async function* stream(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += 1 << 20) yield bytes.subarray(at, at + (1 << 20));
}

onEachDatabase(database => {
  test('a store that fails is known to all at once, and not only after the next look', async () => {
    const it = await scene();
    await using _ = it.state;
    const owner = await it.sandbox();
    expect(it.store.isUsable).toBe(true);
    it.fail = true;
    await expect(it.put('pause', 'p', new Uint8Array([1]), owner)).rejects.toMatchObject({ detail: 'store_refused' });
    await until(() => !it.store.isUsable);
    it.fail = false;
    await it.store.examine();
    expect(it.store.isUsable).toBe(true);
  });

  async function scene() {
    const folder = mkdtempSync(join(tmpdir(), 'atoll-blobs-'));
    folders.push(folder);
    const directory = directoryStore(prepareStoreDirectory(folder), folder);
    const refused = new AtollError('precondition', 'the store refuses the keys', { detail: 'store_refused' });
    const blobs: BlobStore = {
      ...directory,
      put: (key, bytes) => (it.fail ? Promise.reject(refused) : directory.put(key, bytes)),
    };
    const state = await openStore((await database.location()) ?? { kind: 'sqlite', path: ':memory:' });
    const { db } = state;
    const it = {
      nowUs: 1_000_000 * secondUs,
      sent: new Map<number, Uint8Array>(),
      got: new Map<number, Uint8Array>(),
      fail: false,
    };
    const clock = () => it.nowUs;
    const replicaId = newUuid();
    const links = {
      read: (descriptor: number) => stream(it.sent.get(descriptor) ?? new Uint8Array()),
      async write(descriptor: number, bytes: AsyncIterable<Uint8Array>) {
        const parts: Uint8Array[] = [];
        for await (const part of bytes) parts.push(part);
        it.got.set(descriptor, Buffer.concat(parts));
      },
    };
    const options = { blobs, db, clock, links, replicaId, log: silentLog, check: () => checkStore(blobs) };
    const store = await ClusterStore.open(options);
    const team = await createTeam({ db, clock }, { name: 'T', slug: 't' });
    const deps = { clock, db, log: silentLog, busy: { replicaId }, store };
    let next = 0;
    return Object.assign(it, {
      ...options,
      store,
      deps,
      state,
      async sandbox(): Promise<BlobOwner & { ref: { sandboxId: string; executionId: string } }> {
        const ref = { sandboxId: newSandboxId(), executionId: newUuid() };
        const made = {
          ...defaultOptions,
          ...ref,
          teamId: team.teamId,
          nodeId: 'n',
          state: 'paused' as const,
          templateId: 't',
          buildId: 'b',
          alias: null,
          agentVersion: '1',
          cpuCount: 1,
          memoryMiB: 1,
          diskMiB: 1,
          createdAtUs: 1,
          startedAtUs: 1,
          endAtUs: 1,
          timeoutSeconds: 1,
          secure: true,
          volumeMounts: [],
          kept: 'memory' as const,
          agentUnresponsive: false,
          durability: 'cluster' as const,
          nextExecutionId: null,
          nextNodeId: null,
          replicaId: null,
        };
        expect(await insertSandbox(db, made, { concurrentSandboxes: 10, sandboxes: 10 })).toBe('inserted');
        return { kind: 'execution', id: ref.executionId, ref };
      },
      put(kind: 'layer' | 'pause', name: string, content: Uint8Array, owner: BlobOwner) {
        const descriptor = ++next;
        it.sent.set(descriptor, content);
        const outgoing = {
          sizeBytes: content.length,
          send: () => Promise.reject(new Error('there are no URLs')),
          open: async () => ({ sizeBytes: content.length, descriptor }),
        };
        return store.put({ kind, name, sealedKey: null, facts: null }, outgoing, owner);
      },
      /**
       * Makes a machine send `content` to URLs, as far as it gets through; `sizeBytes` is the size that it announced.
       */
      async send(name: string, content: Uint8Array, sizeBytes: number, owner: BlobOwner) {
        const signed = { ...options, blobs: { ...blobs, presign: (key: string) => key } };
        const outgoing = {
          sizeBytes,
          open: () => Promise.reject(new Error('there are URLs')),
          async send(urls: string[]) {
            for (const [part, url] of urls.entries())
              await blobs.put(url, content.subarray(part * partBytes, (part + 1) * partBytes));
          },
        };
        return (await ClusterStore.open(signed)).put(
          { kind: 'pause', name, sealedKey: null, facts: null },
          outgoing,
          owner,
        );
      },
      async get(kind: 'layer' | 'pause', name: string): Promise<Uint8Array | null> {
        const blob = await findBlob(db, kind, name);
        if (!blob) return null;
        const descriptor = ++next;
        return store.bring(blob, {
          receive: () => Promise.reject(new Error('there are no URLs')),
          open: async () => ({ writeId: 'w', descriptor }),
          keep: async () => it.got.get(descriptor) ?? new Uint8Array(),
          drop: async () => {},
        });
      },
      async objects(): Promise<number> {
        let count = 0;
        for await (const _ of store.objects()) count++;
        return count;
      },
      [Symbol.asyncDispose]: () => state[Symbol.asyncDispose](),
    });
  }

  test('what a machine sends is there when all of it came, and not where the stream broke off', async () => {
    await using it = await scene();
    const one = await it.sandbox();
    const content = new Uint8Array(partBytes + 5).fill(7);
    await expect(it.send('p', content.subarray(0, partBytes + 3), content.length, one)).rejects.toMatchObject({
      code: 'unavailable',
      message: `${partBytes + 3} bytes came into the store instead of ${partBytes + 5}`,
    });
    expect(await findBlob(it.db, 'pause', 'p')).toBeNull();
    expect(await it.send('p', content, content.length, one)).toBe(true);
    expect(Buffer.compare((await it.get('pause', 'p')) ?? new Uint8Array(), content)).toBe(0);
  });

  test('what was put is there in full, once for each name, and stays as long as somebody needs it', async () => {
    await using it = await scene();
    const [one, two] = [await it.sandbox(), await it.sandbox()];
    const content = new Uint8Array(partBytes + 5).fill(7);
    content[partBytes] = 9;
    expect(await it.put('layer', 'l', content, one)).toBe(true);
    expect(await it.put('layer', 'l', content, two)).toBe(false);
    const blob = await findBlob(it.db, 'layer', 'l');
    expect(await referTo(it.db, blob?.blobId ?? '', two, it.clock())).toBe(true);
    expect(await it.put('pause', 'p', new Uint8Array(), one)).toBe(true);
    expect(Buffer.compare((await it.get('layer', 'l')) ?? new Uint8Array(), content)).toBe(0);
    expect((await it.get('pause', 'p'))?.length).toBe(0);
    expect(await it.objects()).toBe(3);
    it.nowUs += 1_000_000 * secondUs;
    await collectBlobs(it.deps, grace);
    expect(await it.objects()).toBe(3);
    // One of the layer's two owners is gone: its pause goes, and the layer stays.
    await deleteSandbox(it.db, one.ref, ['paused'], { reason: 'request', atUs: it.nowUs });
    await collectBlobs(it.deps, grace);
    expect(await it.get('pause', 'p')).toBe(null);
    expect(await it.objects()).toBe(2);
    await deleteSandbox(it.db, two.ref, ['paused'], { reason: 'request', atUs: it.nowUs });
    await collectBlobs(it.deps, grace);
    expect(await it.get('layer', 'l')).toBe(null);
    expect(await it.objects()).toBe(0);
  });

  test('what nobody needs stays for its grace, and can be wanted again meanwhile', async () => {
    await using it = await scene();
    const owner = await it.sandbox();
    await it.put('layer', 'l', new Uint8Array(3), owner);
    await deleteSandbox(it.db, owner.ref, ['paused'], { reason: 'request', atUs: it.nowUs });
    it.nowUs += 900 * secondUs;
    await collectBlobs(it.deps, grace);
    const blob = await findBlob(it.db, 'layer', 'l');
    const again = await it.sandbox();
    expect(await referTo(it.db, blob?.blobId ?? '', again, it.clock())).toBe(true);
    it.nowUs += 10_000 * secondUs;
    await collectBlobs(it.deps, grace);
    expect((await it.get('layer', 'l'))?.length).toBe(3);
  });

  test('an upload that fails, or whose process is gone, leaves nothing behind', async () => {
    await using it = await scene();
    const owner = await it.sandbox();
    const broken = {
      sizeBytes: 10,
      send: () => Promise.reject(new Error('there are no URLs')),
      open: () => Promise.reject(new AtollError('unavailable', 'the machine is gone')),
    };
    const blob = { kind: 'pause', name: 'p', sealedKey: null, facts: null } as const;
    await expect(it.store.put(blob, broken, owner)).rejects.toThrow('the machine is gone');
    expect(await findBlob(it.db, 'pause', 'p')).toBe(null);
    // A machine that sends less than it announced.
    const short = { ...broken, open: async () => ({ sizeBytes: 10, descriptor: 999 }) };
    await expect(it.store.put(blob, short, owner)).rejects.toThrow('instead of 10');
    // A process that dies in the middle.
    const other = newUuid();
    await enterReplica(it.db, { replicaId: other, name: 'other' }, it.nowUs + 15 * secondUs);
    const dying = await ClusterStore.open({ ...it, replicaId: other });
    const begun = Promise.withResolvers<void>();
    const hangs = {
      ...broken,
      open() {
        begun.resolve();
        return new Promise<never>(() => {});
      },
    };
    void dying.put(blob, hangs, owner).catch(() => {});
    await begun.promise;
    await giveUpUploads(it.deps);
    expect((await findBlob(it.db, 'pause', 'p'))?.state).toBe('uploading');
    expect(await it.put('pause', 'p', new Uint8Array(1), owner)).toBe(false);
    await leaveReplica(it.db, other);
    await giveUpUploads(it.deps);
    expect(await it.put('pause', 'p', new Uint8Array(1), owner)).toBe(true);
    await collectBlobs(it.deps, grace);
    expect(await it.objects()).toBe(1);
  });

  test('an upload that its process could not give up is given up later, and one that goes on is not', async () => {
    await using it = await scene();
    const owner = await it.sandbox();
    // The state in which the database was away at the moment when the upload failed.
    const left = { blobId: newUuid(), kind: 'pause', name: 'p', bytes: 1, sealedKey: null, facts: null } as const;
    expect(await beginBlob(it.db, left, it)).toBe(true);
    const machine = Promise.withResolvers<{ sizeBytes: number; descriptor: number }>();
    const begun = Promise.withResolvers<void>();
    const slow = {
      sizeBytes: 1,
      send: () => Promise.reject(new Error('there are no URLs')),
      open: () => (begun.resolve(), machine.promise),
    };
    const going = it.store.put({ kind: 'pause', name: 'slow', sealedKey: null, facts: null }, slow, owner);
    await begun.promise;
    // The database was away because another server took over: what that server lacks is kept, and this is not among it.
    const history = { place: 1, system_id: 's', timeline: 2, changed_at_us: it.nowUs };
    await it.db.insertInto('database_timeline').values(history).execute();
    await storeKeeping(it.deps)();
    expect(await it.put('pause', 'p', new Uint8Array(1), owner)).toBe(true);
    it.sent.set(77, new Uint8Array(1));
    machine.resolve({ sizeBytes: 1, descriptor: 77 });
    expect(await going).toBe(true);
  });

  test('a log counts as stored when it is there, and not while somebody puts it there', async () => {
    await using it = await scene();
    const logs = new StoredLogs({ ...it, seed: new Uint8Array(32) });
    const machines = [{ logs: async () => [] }];
    const other = { blobId: newUuid(), kind: 'log', name: 'i1', bytes: 1, sealedKey: null, facts: null } as const;
    expect(await beginBlob(it.db, other, { replicaId: newUuid(), nowUs: it.nowUs })).toBe(true);
    expect(await logs.store('i1', machines)).toBe(false);
    await abandonBlob(it.db, other.blobId, it.nowUs);
    expect([await logs.store('i1', machines), await logs.store('i1', [])]).toEqual([true, true]);
    expect(await logs.read({ sandboxId: 'i1', backward: true, limit: 9 })).toEqual([]);
  });

  test('objects without a row go after a while, and those of another cluster stay', async () => {
    await using it = await scene();
    const owner = await it.sandbox();
    await it.put('pause', 'p', new Uint8Array(2), owner);
    const about = (await Array.fromAsync(it.store.objects()))[0]?.key ?? '';
    const [storeId = ''] = about.split('/');
    await it.blobs.put(`${storeId}/blobs/${newUuid()}/00000`, new Uint8Array(1));
    const foreign = `${newUuid()}/blobs/${newUuid()}/00000`;
    await it.blobs.put(foreign, new Uint8Array(1));
    // What a crash leaves in the middle of a write.
    const [folder = ''] = folders.slice(-1);
    const draft = join(folder, 'objects', storeId, 'blobs', newUuid(), `00000.${newUuid()}.draft`);
    mkdirSync(dirname(draft));
    writeFileSync(draft, 'x');
    await sweepObjects(it.deps, 3600);
    expect(await it.objects()).toBe(3);
    await sweepObjects(it.deps, -3600);
    expect(await it.objects()).toBe(1);
    expect((await it.get('pause', 'p'))?.length).toBe(2);
    expect(await it.blobs.head(foreign)).toBe(1);
  });

  test('a store that is not the one with what was stored gets nothing', async () => {
    await using it = await scene();
    await it.store.examine();
    const owner = await it.sandbox();
    await it.put('pause', 'p', new Uint8Array(2), owner);
    const folder = mkdtempSync(join(tmpdir(), 'atoll-blobs-'));
    folders.push(folder);
    const blobs = directoryStore(prepareStoreDirectory(folder), folder);
    const wrong = await ClusterStore.open({ ...it, blobs, check: () => checkStore(blobs) });
    await wrong.examine();
    expect(wrong.isUsable).toBe(false);
    const put = wrong.put({ kind: 'pause', name: 'q', sealedKey: null, facts: null }, {} as never, owner);
    await expect(put).rejects.toThrow('is not the one that holds');
    await it.store.examine();
    expect(it.store.isUsable).toBe(true);
  });
});
