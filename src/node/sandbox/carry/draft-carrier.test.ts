import { afterEach, beforeEach, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUuid } from '../../../base/id.ts';
import { Reservations } from '../../space/reservations.ts';
import { Sandboxes } from '../state/sandboxes.ts';
import { createDraftCarrier } from './draft-carrier.ts';
import { Drafts } from './drafts.ts';

let folder = '';
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-draft-carrier-'))));
afterEach(() => rmSync(folder, { recursive: true }));

type Parts = Parameters<typeof createDraftCarrier>[0];
const key = randomBytes(32).toString('base64url');
const draftOf = () => ({ sandboxId: 's', executionId: 'e', draftId: newUuid() });
const memoryFacts = { agent: 'a' };

/** A machine without checkpoints; `running` is its sandbox. */
function machine(name: string, running: { volumes?: object[]; memoryBytes?: number } = {}) {
  const data = join(folder, name);
  mkdirSync(data);
  const drafts = new Drafts(join(data, 'drafts'));
  const sandboxes = new Sandboxes();
  const driver = { capabilities: { withoutCheckpoints: null }, memoryUsed: () => running.memoryBytes ?? 0 };
  const record = { sandboxId: 's', executionId: 'e', volumes: running.volumes ?? [], image: { layers: ['gone'] } };
  sandboxes.add({ kind: 'running', sandboxId: 's', record, processes: { driver, slot: {} } } as never);
  const rests: unknown[] = [];
  const checkpoints = { supported: true, host: {} } as { supported: boolean; reason?: string };
  const carrier = createDraftCarrier(
    {
      layout: { data },
      drafts,
      sandboxes,
      checkpoints,
      memoryFacts,
      agents: { digestOf: () => 'a' },
      records: { diskOf: () => join(data, 'disk.img') },
      space: { reserve: (_: string, bytes: number) => new Reservations().add(bytes) },
    } as unknown as Parts,
    { sendRest: (target, by) => Promise.resolve(void rests.push([target, by])) as never },
  );
  return { ...carrier, drafts, data, rests, checkpoints };
}

/** Puts a draft there, as if it had been taken. */
function taken({ drafts }: ReturnType<typeof machine>, draft: ReturnType<typeof draftOf>): void {
  const made = drafts.begin(draft);
  mkdirSync(join(made, 'memory'));
  for (const path of ['disk.img', 'memory/pages-1.img', 'memory/core-1.img', 'else'])
    writeFileSync(join(made, path), `draft of ${path}`);
  drafts.finish(draft);
}

test('a draft is the disk and the pages of the memory, and both machines have it', async () => {
  const [from, to, draft] = [machine('from'), machine('to'), draftOf()];
  taken(from, draft);
  const { sizeBytes, bytes } = await from.send(draft, key);
  const arrival = await to.receive(draft, key, sizeBytes);
  await arrival.take(bytes);
  expect(to.drafts.find(draft)).toBeUndefined();
  await arrival.keep();
  const there = to.drafts.require(draft).folder;
  expect(readdirSync(there, { recursive: true }).map(String).sort()).toEqual([
    'disk.img',
    'memory',
    'memory/pages-1.img',
  ]);
  expect(readFileSync(join(there, 'memory/pages-1.img'), 'utf8')).toBe('draft of memory/pages-1.img');
  expect(from.drafts.find(draft)).toBeDefined();
  await to.drop(draft);
  expect([to.drafts.find(draft), existsSync(there)]).toEqual([undefined, false]);
});

test('a draft that arrives under another ID is refused, and one that is not here can’t be sent', async () => {
  const [from, to, draft] = [machine('from'), machine('to'), draftOf()];
  taken(from, draft);
  const { sizeBytes, bytes } = await from.send(draft, key);
  const arrival = await to.receive(draftOf(), key, sizeBytes);
  await arrival.take(bytes);
  await expect(arrival.keep()).rejects.toMatchObject({ code: 'invalid', message: 'what came is another draft' });
  await expect(to.send(draft, key)).rejects.toMatchObject({ code: 'not_found' });
});

test('after a draft, what the pause keeps is sent', async () => {
  const [it, draft] = [machine('from'), draftOf()];
  await it.sendRest(draft, key);
  expect(it.rests).toEqual([[draft, key]]);
});

test('none is made of a sandbox that stays, is too large, does not run or can’t be checkpointed', async () => {
  const precondition = { code: 'precondition' };
  await expect(machine('volumes', { volumes: [{}] }).describe(draftOf())).rejects.toMatchObject(precondition);
  const large = machine('large', { memoryBytes: 2 * 2 ** 30 + 1 });
  await expect(large.describe(draftOf())).rejects.toMatchObject({
    ...precondition,
    message: expect.stringContaining('no draft is made') as string,
  });
  const it = machine('other');
  await expect(it.describe({ ...draftOf(), executionId: 'another' })).rejects.toMatchObject({ code: 'not_found' });
  Object.assign(it.checkpoints, { supported: false, reason: 'no CRIU' });
  await expect(it.describe(draftOf())).rejects.toMatchObject({
    ...precondition,
    message: expect.stringContaining('no CRIU') as string,
  });
  for (const name of ['volumes', 'large', 'other']) expect(readdirSync(join(folder, name, 'drafts'))).toEqual([]);
});
