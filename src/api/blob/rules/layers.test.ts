import { afterAll, afterEach, beforeEach, expect, spyOn, test } from 'bun:test';
import { newUuid } from '../../../base/id.ts';
import { silentLog } from '../../../base/telemetry/log.ts';
import type { BlobStore } from '../../../protocol/blob.ts';
import type { Machine } from '../../../protocol/cluster.ts';
import { openStore } from '../../database/database.ts';
import { abandonBlob, beginBlob, findBlob, finishBlob, markBlob } from '../store/blobs.ts';
import { removeBlob } from '../store/collect.ts';
import { ClusterStore } from './cluster-store.ts';
import { bringLayer, storeLayer } from './layers.ts';

const { db, ...database } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => database[Symbol.asyncDispose]());
const clock = () => 1e15;
const content = 'a layer';

// What happens during a wait, in place of the time passing.
const waiting: { then: (times: number) => Promise<void>; times: number } = { then: async () => {}, times: 0 };
beforeEach(() => {
  Object.assign(waiting, { then: async () => {}, times: 0 });
  spyOn(Bun, 'sleep').mockImplementation(() => waiting.then(++waiting.times));
});
afterEach(() => void spyOn(Bun, 'sleep').mockRestore());

/** A store in memory, and a machine that has each layer, takes layers, and sends them by itself or not. */
async function scene(presign: BlobStore['presign'] = null) {
  const objects = new Map<string, Uint8Array>();
  const blobs = {
    ...{ place: 'memory', presign },
    put: async (key: string, bytes: Uint8Array) => void objects.set(key, bytes),
    get: async (key: string) => objects.get(key) ?? new Uint8Array(),
    async *list(prefix: string) {
      for (const [key, { length }] of objects) if (key.startsWith(prefix)) yield { key, bytes: length, changedAtMs: 0 };
    },
  } as unknown as BlobStore;
  const taken: string[] = [];
  const links = {
    async *read() {
      yield Buffer.from(content);
    },
    async write(_: number, bytes: AsyncIterable<Uint8Array>) {
      for await (const part of bytes) taken.push(Buffer.from(part).toString());
    },
  };
  const kept: unknown[] = [];
  const machine = {
    layers: {
      bytes: async () => content.length,
      openRead: async () => ({ sizeBytes: content.length, descriptor: 0 }),
      openWrite: async (digest: string, sizeBytes: number) => (
        kept.push(['begin', digest, sizeBytes]),
        { writeId: 'w', descriptor: 1 }
      ),
      keepWrite: async (writeId: string, sizeBytes: number) => void kept.push(['keep', writeId, sizeBytes]),
    },
    transfers: {
      sendLayer: async (_: string, [url = '']: string[]) => void objects.set(url, Buffer.from(content)),
      receiveLayer: async (digest: string, sizeBytes: number, urls: string[]) =>
        void kept.push([digest, sizeBytes, urls.length]),
    },
  } as unknown as Machine;
  const options = { blobs, db, clock, links, replicaId: 'here', log: silentLog, check: async () => {} };
  const store = await ClusterStore.open(options);
  const digest = newUuid();
  const owner = { kind: 'build' as const, id: newUuid() };
  let holders = 0;
  const keep = () => storeLayer({ db, clock, store }, digest, owner, async () => (holders++, machine));
  const isOwned = async () => {
    const refs = await db.selectFrom('blob_refs').select('blob_id').where('owner_id', '=', owner.id).execute();
    return refs.length;
  };
  return { digest, objects, taken, kept, store, machine, keep, isOwned, asked: () => holders };
}

const uploaded = (name: string) =>
  ({ blobId: newUuid(), kind: 'layer', name, bytes: 7, sealedKey: null, facts: null }) as const;

for (const [how, presign] of [
  ['by this process', null],
  ['by URLs', (key: string) => key],
] as const)
  test(`a layer is put into the store once, for all who need it, and brought to machines: ${how}`, async () => {
    const { digest, keep, isOwned, asked, objects, store, machine, kept, taken } = await scene(presign);
    expect(await bringLayer({ db, store }, digest, machine)).toBe(false);
    for (let times = 0; times < 2; times++) await keep();
    expect([await isOwned(), asked(), objects.size]).toEqual([1, 1, 1]);
    expect(await bringLayer({ db, store }, digest, machine)).toBe(true);
    expect([kept, taken]).toEqual(
      presign
        ? [[[digest, 7, 1]], []]
        : [
            [
              ['begin', digest, 7],
              ['keep', 'w', 7],
            ],
            [content],
          ],
    );
  });

test('an upload of the same layer by somebody else is waited for, and done here if it fails', async () => {
  const good = await scene();
  const theirs = uploaded(good.digest);
  await beginBlob(db, theirs, { replicaId: 'there', nowUs: 1 });
  expect(await bringLayer({ db, store: good.store }, good.digest, good.machine)).toBe(false);
  waiting.then = async times => {
    if (times === 3) await finishBlob(db, theirs.blobId, null, 1);
  };
  await good.keep();
  expect([await good.isOwned(), good.asked(), waiting.times]).toEqual([1, 0, 3]);

  waiting.times = 0;
  const failing = await scene();
  const given = uploaded(failing.digest);
  await beginBlob(db, given, { replicaId: 'there', nowUs: 1 });
  waiting.then = () => abandonBlob(db, given.blobId, 1);
  await failing.keep();
  expect([await failing.isOwned(), failing.asked(), waiting.times]).toEqual([1, 1, 1]);
});

test('a layer that is being collected is uploaded anew', async () => {
  const { digest, keep, isOwned, asked } = await scene();
  await keep();
  const { blobId } = (await findBlob(db, 'layer', digest)) ?? { blobId: '' };
  await markBlob(db, blobId, 1);
  await removeBlob(db, blobId, 1);
  await keep();
  expect([await isOwned(), asked()]).toEqual([1, 2]);
});

test('a layer that never arrives is waited for twenty minutes', async () => {
  const { digest, keep } = await scene();
  await beginBlob(db, uploaded(digest), { replicaId: 'there', nowUs: 1 });
  using now = spyOn(performance, 'now').mockReturnValue(1000);
  waiting.then = async times => void now.mockReturnValue(1000 + 20 * 60_000 + (times > 1 ? 1 : 0));
  await expect(keep()).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining(`The layer ${digest} has been on its way`),
  });
  expect(waiting.times).toBe(2);
});
