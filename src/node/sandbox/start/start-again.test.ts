import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { PausedRecord } from '../records/record.ts';
import { startAgain } from './start-again.ts';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'atoll-again-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const record = { sandboxId: 's1', state: 'paused', kept: 'memory', driver: 'crun' } as PausedRecord;
const request = { nextExecutionId: 'e2', memory: true } as Parameters<typeof startAgain>[2];

type SceneOptions = {
  /** The files have had checksums since they were kept. */
  hasChecksums?: boolean;
  fails?: string;
  /** Why no memory can be kept here. */
  without?: string | null;
  /** The check of the disk finds damage. */
  isDamaged?: boolean;
  /** Where its disk is; if set, somebody still has it for a moment. */
  disk?: string;
};

/** What starting a paused sandbox needs, up to the check of its disk, which fails. */
function scene(options: SceneOptions = {}) {
  const { hasChecksums = true, fails, without = null, isDamaged = false, disk = '/disk' } = options;
  let looks = 0;
  const done: string[] = [];
  const logged: string[] = [];
  const act = async (what: string) => {
    done.push(what);
    if (what.split(' ')[0] === fails) throw new AtollError('internal', `${what} fails`);
  };
  const parts = {
    log: createLog('error', line => void logged.push(JSON.parse(line).message)),
    kept: {
      hasChecksums: () => hasChecksums,
      writeLateChecksums: (_: string, kept: string) => act(`late ${kept}`),
      async judgeMemory(judged: PausedRecord) {
        await act('judge');
        return isDamaged ? { ...judged, kept: 'filesystem' } : judged;
      },
      verify: () => act('verify'),
      removeChecksums: () => act('remove'),
    },
    records: { write: ({ kept }: PausedRecord) => act(`record ${kept}`), diskOf: () => disk, keptOf: () => folder },
    disks: { used: async () => (done.push('used'), ++looks === 1) },
    helper: {
      async spawn(argv: string[]) {
        await act(argv.join(' '));
        return { status: 8, output: 'broken' };
      },
    },
    drivers: { of: () => ({ capabilities: { withoutCheckpoints: without } }), toStart: (name: string) => name },
    checkpoints: { supported: true, host: {} },
  } as unknown as Parameters<typeof startAgain>[0];
  return { parts, done, logged };
}
type Left = { error: AtollError; record: PausedRecord };

test('a sandbox that boots is recorded as having only its files, before anything changes them', async () => {
  for (const [kept, records] of [
    ['memory', ['record filesystem']],
    ['filesystem', []],
  ] as const) {
    const { parts, done } = scene();
    const left = (await startAgain(parts, { ...record, kept }, { ...request, memory: false })) as Left;
    expect(left.error).toMatchObject({ detail: 'sandbox_state_damaged' });
    expect(left.record).toEqual({ ...record, kept: 'filesystem' });
    expect(done).toEqual([
      ...['verify', 'remove', ...records, 'e2fsck -p /disk', 'e2fsck -f -y /disk'],
      // These are for the next attempt.
      ...['judge', 'late filesystem'],
    ]);
  }
});

test('a sandbox whose memory is not asked for or not there boots', async () => {
  const { parts, done } = scene();
  await startAgain(parts, { ...record, kept: 'filesystem' }, request);
  expect(done).toContain('e2fsck -p /disk');
});

test('the disk of files without checksums is looked at as a whole, when nobody has it any more', async () => {
  const disk = join(folder, 'disk.img');
  writeFileSync(disk, '');
  const { parts, done } = scene({ hasChecksums: false, disk });
  await startAgain(parts, record, { ...request, memory: false });
  const looked = ['used', 'used', `e2fsck -f -p ${disk}`, `e2fsck -f -y ${disk}`];
  expect(done).toEqual(['remove', 'record filesystem', ...looked, 'judge', 'late filesystem']);
});

test('memory without checksums is judged before anything of it runs, and behind a start that failed', async () => {
  const { parts, done } = scene({ hasChecksums: false, isDamaged: true });
  const left = (await startAgain(parts, record, request)) as Left;
  expect(left.record).toEqual({ ...record, kept: 'filesystem' });
  const booted = ['e2fsck -f -p /disk', 'e2fsck -f -y /disk'];
  expect(done).toEqual(['remove', 'judge', ...booted, 'judge', 'late filesystem']);
  const behind = scene({ isDamaged: true });
  const failed = (await startAgain(behind.parts, record, request)) as Left;
  expect([failed.record.kept, behind.done]).toEqual(['filesystem', ['verify', 'remove', 'judge', 'late filesystem']]);
});

test('an error before anything begins reaches the caller', async () => {
  for (const fails of ['verify', 'remove', 'judge']) {
    const { parts, done } = scene({ fails, hasChecksums: fails !== 'judge' });
    await expect(startAgain(parts, record, request)).rejects.toThrow(`${fails} fails`);
    expect(done.at(-1)).toBe(fails);
  }
});

test('memory that is not there is damaged, and what is left is all', async () => {
  const { parts, done } = scene();
  const left = (await startAgain(parts, record, request)) as Left;
  expect(left.error).toMatchObject({
    ...{ code: 'internal', detail: 'sandbox_state_damaged' },
    message: expect.stringContaining('the memory that sandbox s1 has kept is damaged'),
  });
  expect([left.record, done]).toEqual([record, ['verify', 'remove', 'judge', 'late memory']]);
});

test('if no memory can be restored the error says so, and nothing is lost', async () => {
  const { parts, done } = scene({ without: 'this driver keeps none' });
  const left = (await startAgain(parts, record, request)) as Left;
  expect([left.error.code, left.record, done.at(-1)]).toEqual(['precondition', record, 'late memory']);
});

test('a failed start keeps its error if the checksums fail as well', async () => {
  const { parts, logged } = scene({ fails: 'late' });
  const left = (await startAgain(parts, record, { ...request, memory: false })) as Left;
  expect(left.error).toMatchObject({ detail: 'sandbox_state_damaged' });
  expect(logged).toEqual(['a sandbox that could not be resumed has no checksums']);
});

test('a record that can’t be written keeps the memory', async () => {
  const { parts, done } = scene({ fails: 'record' });
  const left = (await startAgain(parts, record, { ...request, memory: false })) as Left;
  expect([left.error.message, left.record]).toEqual(['record filesystem fails', record]);
  expect(done).not.toContain('e2fsck -p /disk');
});
