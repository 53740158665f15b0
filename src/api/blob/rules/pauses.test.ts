import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { silentLog } from '../../../base/telemetry/log.ts';
import type { BlobStore } from '../../../protocol/blob.ts';
import type { DraftRef, PauseFacts } from '../../../protocol/cluster.ts';
import type { ExecutionRef } from '../../../protocol/node.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { openStore } from '../../database/database.ts';
import { beginBlob, findBlob } from '../store/blobs.ts';
import { ClusterStore } from './cluster-store.ts';
import { DurablePauses } from './pauses.ts';

const { db, ...database } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => database[Symbol.asyncDispose]());
const clock = () => 1e15;
const keyCharacters = 43;

type Fails = (step: string) => AtollError | null;

/** The machines `a` and `b`, a store in memory, and a sandbox that is paused on `a` with `content`. */
async function scene({ presign = null, fails = () => null }: { presign?: BlobStore['presign']; fails?: Fails } = {}) {
  const sandbox = { sandboxId: newUuid(), executionId: newUuid(), nodeId: 'a' };
  const { executionId } = sandbox;
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
  const tell = async (step: string) => {
    told.push(step);
    const error = fails(step);
    if (error) throw error;
  };
  const streams: { text?: string; write?: (text: string) => void }[] = [];
  const links = {
    async *read(descriptor: number) {
      yield Buffer.from(streams[descriptor]?.text ?? '');
    },
    async write(descriptor: number, bytes: AsyncIterable<Uint8Array>) {
      const parts: Uint8Array[] = [];
      for await (const part of bytes) parts.push(part);
      streams[descriptor]?.write?.(Buffer.concat(parts).toString());
    },
  };
  const layer = newUuid();
  const machine = (name: string) => {
    const has = new Map<string, string>();
    const drafts = new Map<string, string>();
    const facts = (text: string): PauseFacts => ({
      ...{ kept: 'memory', sizeBytes: keyCharacters + text.length, layers: [layer], driver: 'crun' },
      memory: {} as PauseFacts['memory'],
    });
    // The sent bytes begin with their key.
    const sent = (text: string, key: string) => {
      expect(key).toHaveLength(keyCharacters);
      return { sizeBytes: key.length + text.length, descriptor: streams.push({ text: key + text }) - 1 };
    };
    const taking = (to: Map<string, string>, what: string) => ({
      async openWrite(id: string, key: string) {
        await tell(`${name}: open ${what}`);
        const write = (text: string) => {
          if (!text.startsWith(key)) throw new AtollError('invalid', 'it is encrypted with another key');
          to.set(`draft ${id}`, text.slice(key.length));
        };
        return { writeId: id, descriptor: streams.push({ write }) - 1 };
      },
      async keepWrite(id: string) {
        await tell(`${name}: keep ${what}`);
        to.set(id, to.get(`draft ${id}`) ?? '');
      },
      dropWrite: () => tell(`${name}: drop ${what}`),
    });
    const [pause, draft] = [taking(has, 'pause'), taking(drafts, 'draft')];
    const of = <T>(map: Map<string, T>, id: string) => {
      const found = map.get(id);
      if (found === undefined) throw new AtollError('not_found', `${name} does not have it`);
      return found;
    };
    const service = {
      node: {
        listPaused: async () =>
          [...has.keys()].map(id => ({ sandboxId: id === 'other' ? 'other' : sandbox.sandboxId, executionId: id })),
        async kill(target: ExecutionRef) {
          await tell(`${name}: kill ${target.executionId}`);
          has.delete(target.executionId);
        },
      },
      pauses: {
        describe: async (target: ExecutionRef) => facts(of(has, target.executionId)),
        openRead: async (target: ExecutionRef, key: string) => sent(of(has, target.executionId), key),
        openWrite: (target: ExecutionRef, key: string) => pause.openWrite(target.executionId, key),
        ...{ keepWrite: pause.keepWrite, dropWrite: pause.dropWrite },
      },
      drafts: {
        describe: async (target: DraftRef) => (drafts.set(target.draftId, 'draft'), facts('draft')),
        openRead: async (target: DraftRef, key: string) => sent(of(drafts, target.draftId), key),
        openRest: async (target: DraftRef, key: string) => sent(`rest of ${of(drafts, target.draftId)}`, key),
        openWrite: (target: DraftRef, key: string) => draft.openWrite(target.draftId, key),
        ...{ keepWrite: draft.keepWrite, dropWrite: draft.dropWrite },
        async drop(target: DraftRef) {
          await tell(`${name}: drop the draft`);
          drafts.delete(target.draftId);
        },
      },
      layers: {
        bytes: async () => 5,
        openRead: async () => ({ sizeBytes: 5, descriptor: streams.push({ text: 'layer' }) - 1 }),
      },
      transfers: {
        async sendLayer(_: string, [url = '']: string[]) {
          objects.set(url, Buffer.from('layer'));
        },
        async sendPause(target: ExecutionRef, key: string, [url = '']: string[]) {
          await tell(`${name}: send by URLs`);
          objects.set(url, Buffer.from(key + of(has, target.executionId)));
        },
        async receivePause(target: ExecutionRef, key: string, _: number, [url = '']: string[]) {
          await tell(`${name}: receive by URLs`);
          const text = Buffer.from(objects.get(url) ?? []).toString();
          expect(text.startsWith(key)).toBe(true);
          has.set(target.executionId, text.slice(key.length));
        },
      },
    };
    return { has, drafts, service };
  };
  const [a, b] = [machine('a'), machine('b')];
  a.has.set(executionId, 'content');
  const trouble: { now: AtollError | null } = { now: null };
  const check = async () => {
    if (trouble.now) throw trouble.now;
  };
  const options = { blobs, db, clock, links, replicaId: 'here', log: silentLog, check };
  const store = await ClusterStore.open(options);
  const away = new Set<string>();
  const pauses = new DurablePauses({
    ...{ db, clock, store, seed: new Uint8Array(32).fill(1) },
    machines: {
      carried: links,
      known(nodeId: string) {
        if (away.has(nodeId)) throw new AtollError('unavailable', `${nodeId} is away`);
        return { machine: (nodeId === 'a' ? a : b).service };
      },
      layers: { ensure: (nodeId: string, layers: string[]) => tell(`${nodeId}: ${layers.length} layers`) },
    } as unknown as Machines,
  });
  const elsewhere = { ...sandbox, nodeId: 'b' };
  return { sandbox, elsewhere, executionId, layer, a, b, told, pauses, store, trouble, objects, away };
}

const damaged = { code: 'internal', detail: 'sandbox_state_damaged' };

for (const [how, presign] of [
  ['by this process', null],
  ['by URLs', (key: string) => key],
] as const)
  test(`what a sandbox has kept is stored, encrypted, and comes to another machine: ${how}`, async () => {
    const { sandbox, elsewhere, executionId, layer, b, told, pauses, objects } = await scene({ presign });
    await pauses.store(sandbox);
    const blob = await findBlob(db, 'pause', executionId);
    expect(blob).toMatchObject({ state: 'stored', sealedKey: expect.any(String), facts: { layers: [layer] } });
    expect(await findBlob(db, 'layer', layer)).toMatchObject({ state: 'stored' });
    const owners = await db.selectFrom('blob_refs').select('owner_id').where('owner_id', '=', executionId).execute();
    expect(owners).toHaveLength(2);
    // It is there already, and is not sent again.
    const count = objects.size;
    await pauses.store(sandbox);
    expect(objects.size).toBe(count);
    expect(await pauses.facts(executionId)).toMatchObject({ driver: 'crun', layers: [layer] });
    told.length = 0;
    await pauses.bring(elsewhere);
    expect(b.has.get(executionId)).toBe('content');
    expect(told[0]).toBe('b: 1 layers');
    told.length = 0;
    await pauses.bring(elsewhere);
    expect(told).toEqual([]);
  });

test('a pause that somebody else stores is not stored a second time', async () => {
  const { sandbox, executionId, pauses } = await scene();
  const other = {
    blobId: newUuid(),
    kind: 'pause',
    name: executionId,
    bytes: 1,
    sealedKey: null,
    facts: null,
  } as const;
  await beginBlob(db, other, { replicaId: 'there', nowUs: 1 });
  await expect(pauses.store(sandbox)).rejects.toMatchObject({ code: 'conflict' });
  await expect(pauses.facts(executionId)).rejects.toMatchObject({ code: 'not_found' });
});

test('whether the store can be used is known', async () => {
  const { pauses, store, trouble } = await scene();
  pauses.requireUsable();
  expect(pauses.isUsable).toBe(true);
  trouble.now = new AtollError('unavailable', 'the store is away');
  await store.examine();
  expect(pauses.isUsable).toBe(false);
  expect(() => pauses.requireUsable()).toThrow('the store is away');
});

test('a pause that is missing or damaged is reported as such, and a mere failure is tried again', async () => {
  const never = await scene();
  await expect(never.pauses.bring(never.elsewhere)).rejects.toMatchObject(damaged);
  for (const change of [{ sealed_key: null }, { facts_json: null }, { state: 'uploading' }]) {
    const { pauses, sandbox, elsewhere, executionId, told } = await scene();
    await pauses.store(sandbox);
    await db
      .updateTable('blobs')
      .set(change as never)
      .where('name', '=', executionId)
      .execute();
    told.length = 0;
    await expect(pauses.bring(elsewhere)).rejects.toMatchObject(damaged);
    expect(told).toEqual([]);
  }
  for (const [code, wanted] of [
    ['invalid', damaged],
    ['not_found', damaged],
    ['no_space', { code: 'no_space' }],
  ] as const) {
    const fails = (step: string) => (step === 'b: keep pause' ? new AtollError(code, 'it failed') : null);
    const { pauses, sandbox, elsewhere } = await scene({ fails });
    await pauses.store(sandbox);
    await expect(pauses.bring(elsewhere)).rejects.toMatchObject(wanted);
  }
});

test('an earlier, stored execution is removed from the machine, and an unknown one stays', async () => {
  const { pauses, sandbox, elsewhere, executionId, b, told } = await scene();
  await pauses.store(sandbox);
  const earlier = {
    blobId: newUuid(),
    kind: 'pause',
    name: newUuid(),
    bytes: 1,
    sealedKey: null,
    facts: null,
  } as const;
  await beginBlob(db, earlier, { replicaId: 'here', nowUs: 1 });
  for (const id of [earlier.name, 'unknown', 'other']) b.has.set(id, 'old');
  await pauses.bring(elsewhere);
  expect(told.filter(step => step.includes('kill'))).toEqual([`b: kill ${earlier.name}`]);
  expect([...b.has.keys()].filter(id => !id.startsWith('draft'))).toEqual(['unknown', 'other', executionId]);
});

test('a sandbox is carried to another machine, as the difference from a draft where both have one', async () => {
  const whole = await scene();
  await whole.pauses.carry(whole.sandbox, 'b');
  expect(whole.b.has.get(whole.executionId)).toBe('content');
  // It is there.
  whole.told.length = 0;
  await whole.pauses.carry(whole.sandbox, 'b');
  expect(whole.told).toEqual([]);

  const rest = await scene();
  const draft = { ...rest.sandbox, draftId: newUuid() };
  expect(await rest.pauses.draft(draft, 'b')).toBe(keyCharacters + 'draft'.length);
  expect(rest.b.drafts.get(draft.draftId)).toBe('draft');
  await rest.pauses.carry(rest.sandbox, 'b', { draftId: draft.draftId, sizeBytes: 5 });
  expect(rest.b.has.get(rest.executionId)).toBe('rest of draft');
  await rest.pauses.dropDraft(draft, 'b');
  expect([rest.a.drafts.has(draft.draftId), rest.b.drafts.has(draft.draftId)]).toEqual([false, false]);
  rest.away.add('a');
  await rest.pauses.dropDraft(draft, 'b');
  expect(rest.told.at(-1)).toBe('b: drop the draft');
});

test('without its draft everything is carried, and other failures are failures', async () => {
  const gone = await scene();
  await gone.pauses.carry(gone.sandbox, 'b', { draftId: 'gone', sizeBytes: 5 });
  expect(gone.b.has.get(gone.executionId)).toBe('content');
  const full = await scene({
    fails: step => (step === 'b: open pause' ? new AtollError('no_space', 'b is full') : null),
  });
  await expect(full.pauses.carry(full.sandbox, 'b', { draftId: 'gone', sizeBytes: 5 })).rejects.toThrow('b is full');
  expect(full.told).toEqual(['b: open pause']);
});

test('the layers of a sandbox are brought before it moves', async () => {
  const { pauses, sandbox, layer, told, away } = await scene();
  expect(await pauses.describe(sandbox)).toMatchObject({ layers: [layer] });
  await pauses.prepare(sandbox, 'b');
  expect(await findBlob(db, 'layer', layer)).toMatchObject({ state: 'stored' });
  expect(told).toEqual(['b: 1 layers']);
  away.add('a');
  await expect(pauses.describe(sandbox)).rejects.toThrow('a is away');
});
