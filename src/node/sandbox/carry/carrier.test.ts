import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, jest, spyOn, test } from 'bun:test';
import { sealedBytes, sealFrames } from '../../../base/crypto/frames.ts';
import { AtollError } from '../../../base/error.ts';
import { Reservations } from '../../space/reservations.ts';
import { silentLog } from '../../../base/telemetry/log.ts';
import { writeManifest } from '../../snapshot/manifest.ts';
import type { Processes } from '../slot/processes.ts';
import type { PausedRecord, RunningRecord, SandboxRecord } from '../records/record.ts';
import { createRecords } from '../records/record-store.ts';
import { recordKey } from '../records/record-key.ts';
import { Sandboxes } from '../state/sandboxes.ts';
import type { Agents } from './agents.ts';
import { archiveBytes, planFiles, readArchive } from './archive.ts';
import { type CarryParts, createCarrier } from './carrier.ts';

let folder = '';
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'atoll-carrier-'))));
afterEach(() => {
  jest.useRealTimers();
  rmSync(folder, { recursive: true });
});

const target = { sandboxId: 's', executionId: 'e' };
const record = { ...target, state: 'paused', kept: 'memory', driver: 'crun', network: { internetAccess: true } };

/** Paths that were written out to the disk, each under its name at that time. */
async function writtenOut(): Promise<{ paths: string[] } & Disposable> {
  await using any = await open(folder);
  const handles = Object.getPrototypeOf(any) as FileHandle;
  const { sync } = handles;
  const paths: string[] = [];
  const spy = spyOn(handles, 'sync').mockImplementation(function (this: FileHandle) {
    paths.push(readlinkSync(`/proc/self/fd/${this.fd}`));
    return sync.call(this);
  });
  return { paths, [Symbol.dispose]: () => spy.mockRestore() };
}

/** The copies of a machine by their digests, the current one first. */
function agentsOf(copies: Record<string, string>): Agents {
  const [present = '', ...earlier] = Object.keys(copies);
  return {
    present,
    earlier,
    digestOf: directory => Object.keys(copies).find(digest => copies[digest] === directory) ?? '',
    require(digest) {
      const copy = copies[digest];
      if (copy === undefined) throw new AtollError('precondition', 'it has no such agent');
      return copy;
    },
  };
}

test('memory that comes from another machine is on the disk before the sandbox is recorded as paused', async () => {
  const [from, key] = [join(folder, 'from'), randomBytes(32)];
  mkdirSync(join(from, 'memory'), { recursive: true });
  for (const path of ['disk.img', 'memory/pages-1.img', 'memory/core-1.img']) writeFileSync(join(from, path), path);
  const header = { version: 1, record, agent: 'a', files: planFiles(from, () => false) } as const;
  using synced = await writtenOut();
  const records = createRecords(join(folder, 'sandboxes'), recordKey(folder));
  const before: string[] = [];
  const carrier = createCarrier({
    layout: { data: folder },
    sandboxes: new Sandboxes(),
    records: {
      ...records,
      write(written: SandboxRecord) {
        before.push(...synced.paths);
        return records.write(written);
      },
    },
    kept: { writeChecksums: async () => {} },
    drivers: { names: ['crun'] },
    logs: { write() {} },
    memoryFacts: {},
    agents: agentsOf({ a: '/agent' }),
    drafts: { find: () => undefined },
    space: { reserve: (_what: string, bytes: number) => new Reservations().add(bytes) },
  } as unknown as CarryParts);
  const sizeBytes = sealedBytes(archiveBytes(header));
  const arrival = await carrier.receive(target, key.toString('base64url'), sizeBytes);
  await arrival.take(sealFrames(key, readArchive(from, header)));
  expect(await arrival.keep()).toMatchObject({ ...target, kept: 'memory' });
  const ends = ['/disk.img', '/memory/pages-1.img', '/memory/core-1.img', '/memory'];
  expect(ends.filter(end => !before.some(path => path.endsWith(end)))).toEqual([]);
  expect(readFileSync(join(records.keptOf('s'), 'memory/pages-1.img'), 'utf8')).toBe('memory/pages-1.img');
});

const key = randomBytes(32).toString('base64url');
const ofPaused = {
  ...target,
  state: 'paused',
  kept: 'memory',
  driver: 'crun',
  image: { layers: ['l1'] },
  volumes: [],
  network: { internetAccess: true },
  agentDir: '/agents/its',
  frozen: null,
  setAside: null,
} as unknown as PausedRecord;

/** A machine. `happened` records its other actions; those named in `fails` fail. */
function machine(name: string) {
  const data = join(folder, name);
  mkdirSync(data, { recursive: true });
  const happened: string[] = [];
  const fails = new Set<string>();
  const sandboxes = new Sandboxes();
  const records = createRecords(join(data, 'sandboxes'), recordKey(data));
  const written = new Set<string>();
  const does = async (what: string) => {
    await Promise.resolve();
    happened.push(what);
    if (fails.has(what)) throw new Error(`${what} failed`);
  };
  const parts = {
    layout: { data },
    sandboxes,
    records,
    kept: {
      hasChecksums: (id: string) => written.has(id),
      writeLateChecksums: (id: string, kept: string) => does(`late ${kept}`).then(() => written.add(id)),
      judgeMemory: async (record: PausedRecord) => record,
      writeChecksums: () => does('checksums'),
    },
    drivers: { names: ['crun'] },
    logs: { write: (_: string, __: string, ___: string, text: string) => happened.push(text) },
    memoryFacts: { agent: 'a', kernel: 'present', criu: 'present', cpuFlags: [] },
    agents: agentsOf({ a: `/agents/${name}` }),
    drafts: { find: () => undefined, require: () => ({ draftId: 'd', folder: '', known: undefined }), drop: () => {} },
    space: { reserve: (_: string, bytes: number) => new Reservations().add(bytes) },
    processControl: { release: () => does('release') },
    log: silentLog,
  };
  const carrier = createCarrier(parts as unknown as CarryParts);
  /** Adds a paused sandbox here. */
  const paused = (record: Partial<PausedRecord> = {}) => {
    const kept = records.keptOf('s');
    mkdirSync(join(kept, 'memory'), { recursive: true });
    mkdirSync(join(kept, 'memory.partial'));
    for (const path of ['disk.img', 'memory/pages-1.img', 'memory.partial/pages-1.img', 'checksums'])
      writeFileSync(join(kept, path), path);
    const madeBy = { machine: 'x86_64', kernel: 'older', criu: 'older' };
    writeManifest(join(kept, 'memory'), {
      version: 1,
      memory: true,
      disk: false,
      createdAtMs: 5,
      mounts: [],
      madeBy,
      facts: {},
    });
    sandboxes.add({ kind: 'paused', sandboxId: 's', record: { ...ofPaused, agentDir: `/agents/${name}`, ...record } });
  };
  return { ...carrier, parts, sandboxes, records, happened, fails, paused };
}
type Machine = ReturnType<typeof machine>;

async function carry(from: Machine, to: Machine, as = target) {
  const { sizeBytes, bytes } = await from.send(target, key);
  const arrival = await to.receive(as, key, sizeBytes);
  await arrival.take(bytes);
  return arrival.keep();
}

test('a paused sandbox is carried with what it has kept, and is paused there', async () => {
  const [from, to] = [machine('from'), machine('to')];
  from.paused();
  expect(await carry(from, to)).toMatchObject({ ...target, kept: 'memory' });
  // Nothing is sent without checksums.
  expect(from.happened).toEqual(['late memory']);
  expect(to.happened).toEqual(['checksums', 'came from another machine, paused']);
  const there = to.records.keptOf('s');
  expect(readFileSync(join(there, 'memory/pages-1.img'), 'utf8')).toBe('memory/pages-1.img');
  expect(['checksums', 'memory.partial'].filter(name => existsSync(join(there, name)))).toEqual([]);
  expect(to.sandboxes.findPaused(target)?.record).toMatchObject({
    agentDir: '/agents/to',
    network: { internetAccess: false },
    frozen: null,
    volumes: [],
  });
  // When it comes a second time, it is already here.
  expect(await carry(from, to)).toMatchObject(target);
  expect(to.happened).toHaveLength(2);
});

test('a sandbox is described by what another machine has to have', async () => {
  const it = machine('from');
  it.paused();
  const described = await it.describe(target);
  expect(described).toEqual({
    kept: 'memory',
    sizeBytes: (await it.send(target, key)).sizeBytes,
    layers: ['l1'],
    driver: 'crun',
    memory: { agent: 'a', kernel: 'older', criu: 'older', cpuFlags: [] } as never,
  });
  const files = machine('files');
  files.paused({ kept: 'filesystem' });
  expect((await files.describe(target)).memory).toMatchObject({ kernel: 'present', criu: 'present' });
});

test('a running sandbox is described as what its memory would be', async () => {
  const it = machine('from');
  const processes = { slot: {}, driver: { memoryUsed: () => 4096 } } as unknown as Processes;
  const record = { ...ofPaused, state: 'running', agentDir: '/agents/from' } as unknown as RunningRecord;
  const running = it.sandboxes.add({ kind: 'running', sandboxId: 's', record, processes } as never);
  expect(await it.describe(target)).toMatchObject({ kept: 'memory', sizeBytes: 4096, memory: { kernel: 'present' } });
  await expect(it.describe({ ...target, executionId: 'another' })).rejects.toMatchObject({ code: 'not_found' });
  await expect(it.send(target, key)).rejects.toMatchObject({ code: 'not_found' });
  Object.assign(running, { record: { ...record, volumes: [{ volumeId: 'v', path: '/v' }] } });
  await expect(it.describe(target)).rejects.toMatchObject({ code: 'precondition' });
});

test('one with volumes, and one that an operator has to decide about, stay where they are', async () => {
  const withVolumes = machine('volumes');
  withVolumes.paused({ volumes: [{ volumeId: 'v', path: '/v' }] } as Partial<PausedRecord>);
  await expect(withVolumes.send(target, key)).rejects.toMatchObject({ code: 'precondition' });
  const orphan = machine('orphan');
  orphan.paused({ setAside: { atMs: 1, reason: 'nobody knows it' } });
  await expect(orphan.send(target, key)).rejects.toMatchObject({ code: 'not_found' });
});

test('a sandbox that does not fit this machine is not kept, and leaves nothing', async () => {
  const refused = async (record: Partial<PausedRecord>, to: Machine, as = target) => {
    const from = machine(`from-${Math.random()}`);
    from.paused(record);
    const outcome = await carry(from, to, as).catch((error: unknown) => error);
    expect(to.sandboxes.findPaused(target)).toBeUndefined();
    expect(existsSync(join(to.parts.layout.data, 'sandboxes', 's'))).toBe(false);
    return outcome;
  };
  const to = machine('to');
  for (const as of [
    { ...target, executionId: 'another' },
    { ...target, sandboxId: 'another' },
  ])
    expect(await refused({}, to, as)).toMatchObject({ code: 'invalid', message: 'what came is another sandbox' });
  expect(await refused({ driver: 'gvisor' }, to)).toMatchObject({ code: 'precondition' });
  const other = machine('other');
  other.parts.agents = agentsOf({ b: '/agents/other' });
  expect(await refused({}, other)).toMatchObject({ code: 'precondition' });
  to.fails.add('checksums');
  expect(await refused({}, to)).toMatchObject({ message: 'checksums failed' });
});

test('without memory, files can go to a machine with another agent', async () => {
  const [from, to] = [machine('from'), machine('to')];
  from.paused({ kept: 'filesystem' });
  to.parts.agents = agentsOf({ b: '/agents/to' });
  expect(await carry(from, to)).toMatchObject({ kept: 'filesystem' });
  expect(to.sandboxes.findPaused(target)?.record.agentDir).toBe('/agents/to');
});

test('memory of an earlier agent continues with that agent, on a machine that has it too', async () => {
  const [from, to] = [machine('from'), machine('to')];
  from.parts.agents = agentsOf({ b: '/agents/from-later', a: '/agents/from' });
  to.parts.agents = agentsOf({ b: '/agents/to-later', a: '/agents/to-earlier' });
  from.paused();
  expect((await from.describe(target)).memory.agent).toBe('a');
  expect(await carry(from, to)).toMatchObject({ kept: 'memory' });
  expect(to.sandboxes.findPaused(target)?.record.agentDir).toBe('/agents/to-earlier');
});

test('one that is here as another execution is not replaced', async () => {
  const [from, to] = [machine('from'), machine('to')];
  from.paused();
  to.paused({ executionId: 'another' });
  await expect(carry(from, to)).rejects.toMatchObject({ code: 'conflict' });
});

test('a sandbox that is sent waits until all was read, nobody reads any more, or half an hour is over', async () => {
  const it = machine('from');
  it.paused();
  let turns = 0;
  const turn = () => it.sandboxes.inTurn('s', async () => void turns++);
  const read = await it.send(target, key);
  const afterRead = turn();
  for await (const _ of read.bytes) expect(turns).toBe(0);
  await afterRead;
  const left = await it.send(target, key);
  const afterLeft = turn();
  for await (const _ of left.bytes) break;
  await afterLeft;
  jest.useFakeTimers();
  const held = await it.send(target, key);
  const afterHeld = turn();
  jest.advanceTimersByTime(30 * 60_000 - 1);
  for (let wait = 0; wait < 20; wait++) await Promise.resolve();
  expect(turns).toBe(2);
  jest.advanceTimersByTime(1);
  await afterHeld;
  await expect(Array.fromAsync(held.bytes)).rejects.toThrow();
});
