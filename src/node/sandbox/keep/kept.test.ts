import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Disks } from '../../disks/disks.ts';
import type { Helper } from '../../native/helper.ts';
import type { ProgramKind } from '../../native/program-places.ts';
import type { PausedRecord } from '../records/record.ts';
import type { Records } from '../records/record-store.ts';
import { repairDisk } from './disk.ts';
import { createKeptFiles } from './kept.ts';
import { silentLog } from '../../../base/telemetry/log.ts';

test('checks of disks take no places of programs that make disks', async () => {
  const kinds: (ProgramKind | undefined)[] = [];
  const helper = {
    spawn: async (_: string[], { kind }: { kind?: ProgramKind }) => (kinds.push(kind), { status: 0, output: '' }),
  } as unknown as Helper;
  const records = { keptOf: () => '/kept' } as unknown as Records;
  const disks = {} as unknown as Disks;
  const kept = createKeptFiles({ helper, helperBinary: 'helper', disks, records, log: silentLog });
  await kept.verify('one');
  await repairDisk({ helper, log: silentLog }, '/disk');
  expect(kinds).toEqual(['check', 'check']);
});

test('files without memory that get their checksums late are looked through before', async () => {
  const image = join(mkdtempSync(join(tmpdir(), 'atoll-kept-')), 'disk.img');
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rmSync(dirname(image), { recursive: true }));
  writeFileSync(image, '');
  const programs: string[] = [];
  const helper = {
    spawn: async (argv: string[]) => (
      programs.push(argv.join(' ')),
      { status: argv.includes('-p') ? 4 : 0, output: '' }
    ),
  } as unknown as Helper;
  // A program that unmounts it still has it for a moment.
  let looks = 0;
  const used = async () => (programs.push('used'), ++looks === 1);
  const kept = createKeptFiles({
    helper,
    helperBinary: 'helper',
    disks: { used } as unknown as Disks,
    records: { keptOf: () => '/kept', diskOf: () => image } as unknown as Records,
    log: silentLog,
  });
  const looked = ['used', 'used', `e2fsck -f -p ${image}`, `e2fsck -f -y ${image}`];
  await kept.writeLateChecksums('one', 'filesystem');
  expect(programs.splice(0)).toEqual([...looked, 'used', 'helper seal /kept']);
  await kept.writeLateChecksums('one', 'memory');
  expect(programs).toEqual(['used', 'helper seal /kept']);
});

const files = { sandboxId: 'one', kept: 'filesystem' } as PausedRecord;
const memory = { ...files, kept: 'memory' } as PausedRecord;

/**
 * Judges memory, and tells whether that is still there. `statuses` are those of e2fsck, by one of its options;
 * `fails`: the record can't be written.
 */
function judging(statuses: Record<string, number>, { fails = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-kept-'));
  const memoryDir = join(folder, 'memory');
  mkdirSync(memoryDir);
  const did: string[] = [];
  const { judgeMemory } = createKeptFiles({
    helper: {
      async spawn(argv: string[]) {
        did.push(argv.join(' '));
        return { status: argv.map(option => statuses[option] ?? 0).reduce((a, b) => a + b), output: 'it says why' };
      },
    } as unknown as Helper,
    helperBinary: 'helper',
    disks: { used: async () => false } as unknown as Disks,
    records: {
      keptOf: () => folder,
      diskOf: () => '/disk',
      async write({ kept }: PausedRecord) {
        did.push(`record ${kept}, ${existsSync(memoryDir) ? 'memory is there' : 'without memory'}`);
        if (fails) throw new Error('the disk is full');
      },
    } as unknown as Records,
    log: silentLog,
  });
  const isThere = () => existsSync(memoryDir);
  return { judgeMemory, did, isThere, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}
const [replay, look] = ['e2fsck -p -E journal_only /disk', 'e2fsck -f -n /disk'];
const recorded = 'record filesystem, memory is there';

test('memory stays where its disk is whole once its journal is replayed, whatever that took', async () => {
  for (const statuses of [{}, { '-p': 1 }]) {
    using it = judging(statuses);
    expect([await it.judgeMemory(memory), it.did, it.isThere()]).toEqual([memory, [replay, look], true]);
  }
  using it = judging({});
  expect([await it.judgeMemory(files), it.did]).toEqual([files, []]);
});

test('memory is removed where its disk is damaged, once the record says so', async () => {
  for (const [statuses, looked] of [
    [{ '-p': 4 }, [replay]],
    [{ '-n': 4 }, [replay, look]],
    // It has given up in the middle.
    [{ '-n': 12 }, [replay, look]],
  ] as const) {
    using it = judging(statuses);
    expect([await it.judgeMemory(memory), it.did, it.isThere()]).toEqual([files, [...looked, recorded], false]);
    using failing = judging(statuses, { fails: true });
    await expect(failing.judgeMemory(memory)).rejects.toThrow('the disk is full');
    expect([failing.did.at(-1), failing.isThere()]).toEqual([recorded, true]);
  }
});

test('if the state of the disk can’t be found out, the memory stays', async () => {
  // It can't be read, or takes too long.
  for (const status of [8, 137]) {
    using it = judging({ '-n': status });
    await expect(it.judgeMemory(memory)).rejects.toMatchObject({
      ...{ code: 'internal', detail: 'sandbox_state_damaged' },
      message: "the disk /disk can't be looked through: it says why",
    });
    expect([it.did, it.isThere()]).toEqual([[replay, look], true]);
  }
});

test('a disk that can’t be repaired gets no checksums, so that the next start looks through it again', async () => {
  const programs: string[] = [];
  const helper = {
    spawn: async ([program]: string[]) => (programs.push(program ?? ''), { status: 8, output: 'it is cut short' }),
  } as unknown as Helper;
  const records = { keptOf: () => '/kept', diskOf: () => '/nowhere' } as unknown as Records;
  const disks = {} as unknown as Disks;
  const kept = createKeptFiles({ helper, helperBinary: 'helper', disks, records, log: silentLog });
  await expect(kept.writeLateChecksums('one', 'filesystem')).rejects.toThrow('it is cut short');
  expect(programs).toEqual(['e2fsck', 'e2fsck']);
});

test('files that do not match their checksums are reported as damaged', async () => {
  const asked: unknown[] = [];
  const found = { status: 0, output: '' };
  const helper = {
    spawn: async (argv: string[], { teamId }: { teamId?: string }) => (asked.push([...argv, teamId]), found),
  } as unknown as Helper;
  const records = { keptOf: (id: string) => `/kept/${id}` } as unknown as Records;
  const kept = createKeptFiles({ helper, helperBinary: 'helper', disks: {} as Disks, records, log: silentLog });
  await kept.verify('one', 'team');
  expect(asked).toEqual([['helper', 'verify', '/kept/one', 'team']]);
  Object.assign(found, { status: 1, output: 'disk.img is cut off\n' });
  await expect(kept.verify('one')).rejects.toMatchObject({
    code: 'internal',
    detail: 'sandbox_state_damaged',
    message: 'what sandbox one has kept is damaged: disk.img is cut off',
  });
});
