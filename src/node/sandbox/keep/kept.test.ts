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

test('what looks through the disks of others has no place of what makes disks', async () => {
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

const files = { sandboxId: 'one', kept: 'filesystem' } as PausedRecord;
const memory = { ...files, kept: 'memory' } as PausedRecord;

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
  // Whoever unmounts it has it for a moment longer.
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
  expect(await kept.writeLateChecksums(files)).toEqual(files);
  expect(programs).toEqual([...looked, 'used', 'helper seal /kept']);
});

test('memory that gets its checksums late stays where its disk is whole, else its files alone do', async () => {
  for (const [failing, isRecorded] of [
    ['nothing', true],
    ['journal_only', true],
    ['-n', true],
    ['-n', false],
  ] as const) {
    const folder = mkdtempSync(join(tmpdir(), 'atoll-kept-'));
    await using cleanup = new AsyncDisposableStack();
    cleanup.defer(() => rmSync(folder, { recursive: true }));
    mkdirSync(join(folder, 'memory'));
    const did: string[] = [];
    const kept = createKeptFiles({
      helper: {
        spawn: async (argv: string[]) => (
          did.push(argv.join(' ')),
          { status: argv.includes(failing) ? 4 : 0, output: '' }
        ),
      } as unknown as Helper,
      helperBinary: 'helper',
      disks: { used: async () => false } as unknown as Disks,
      records: {
        keptOf: () => folder,
        diskOf: () => '/disk',
        async write({ kept }: PausedRecord) {
          did.push(`record ${kept}, ${existsSync(join(folder, 'memory')) ? 'memory is there' : 'without memory'}`);
          if (!isRecorded) throw new Error('the disk is full');
        },
      } as unknown as Records,
      log: silentLog,
    });
    const looked = ['e2fsck -p -E journal_only /disk', ...(failing === 'journal_only' ? [] : ['e2fsck -f -n /disk'])];
    if (!isRecorded) {
      await expect(kept.writeLateChecksums(memory)).rejects.toThrow('the disk is full');
      expect([did.slice(looked.length), existsSync(join(folder, 'memory'))]).toEqual([
        ['record filesystem, memory is there'],
        true,
      ]);
      continue;
    }
    const isWhole = failing === 'nothing';
    expect(await kept.writeLateChecksums(memory)).toEqual(isWhole ? memory : files);
    const repaired = ['record filesystem, memory is there', 'e2fsck -f -p /disk'];
    expect(did).toEqual([...looked, ...(isWhole ? [] : repaired), `helper seal ${folder}`]);
    expect(existsSync(join(folder, 'memory'))).toBe(isWhole);
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
  await expect(kept.writeLateChecksums(files)).rejects.toThrow('it is cut short');
  expect(programs).toEqual(['e2fsck', 'e2fsck']);
});

test('what does not fit its checksums is damaged, and said to be', async () => {
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
