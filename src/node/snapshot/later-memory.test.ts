import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sandboxEnded } from './criu.ts';
import { bringLater, forgetLater, forgetLaterBut, memoryIsThere, whyMemoryLost } from './later-memory.ts';

let runDir = '';
beforeEach(() => void (runDir = mkdtempSync(join(tmpdir(), 'atoll-later-'))));
afterEach(() => rmSync(runDir, { recursive: true }));

/** A helper that gives each program the next answer, and records the calls. */
function hostOf(...answers: { status: number; output: string }[]) {
  const asked: string[][] = [];
  const spawn = async (argv: string[]) => {
    asked.push(argv.slice(1));
    return answers[asked.length - 1] ?? { status: 0, output: '' };
  };
  return { asked, host: { runDir, helperBinary: 'helper', helper: { spawn } } as never };
}
const plans = () => readdirSync(join(runDir, 'later')).toSorted();

const run = {
  slotName: 's1',
  directory: '/kept/memory',
  imagesDir: '/staging/s1',
  group: '/sys/fs/cgroup/atoll0/s1',
  pages: {
    later: [
      {
        pid: 2,
        file: 'pages-1.img',
        areas: [{ from: 4096, to: 12288 }],
        pieces: [{ from: 4096, to: 8192, offset: 0 }],
      },
      { pid: 30, file: 'pages-2.img', areas: [], pieces: [{ from: 1, to: 2, offset: 3 }] },
    ],
    now: [{ file: 'pages-1.img', from: 0, to: 2 }],
  },
};

test('the process that brings memory gets a plan, with the oldest process last, which is served first', async () => {
  const { asked, host } = hostOf();
  const later = await bringLater(host, run);
  const [plan] = plans();
  const file = join(runDir, 'later', plan as string);
  expect(plan).toMatch(/^s1-[0-9a-f]{8}$/);
  expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toEqual([
    'group /sys/fs/cgroup/atoll0/s1',
    'snapshot /kept/memory',
    'directory /staging/s1',
    'process 30 pages-2.img',
    'piece 1 2 3',
    'process 2 pages-1.img',
    'area 4096 12288',
    'piece 4096 8192 0',
    'now pages-1.img 0 2',
  ]);
  await later.verifyNow();
  await later.giveUp();
  expect(asked).toEqual([
    ['bring-later', file],
    ['verify-now', file],
    ['end-later', file, '/staging/s1'],
  ]);
  expect(plans()).toEqual([]);
});

test('if memory can’t be brought the plan is removed; memory that comes at once may be damaged', async () => {
  const refused = hostOf({ status: 1, output: 'epoll: no\n' });
  await expect(bringLater(refused.host, run)).rejects.toThrow('the memory of the sandbox can’t be brought: epoll: no');
  expect(plans()).toEqual([]);
  const damaged = hostOf({ status: 0, output: '' }, { status: 1, output: 'pages-1.img: Bad message' });
  const later = await bringLater(damaged.host, run);
  await expect(later.verifyNow()).rejects.toMatchObject({ detail: 'snapshot_damaged' });
});

test('giving it up reports a damaged image, and no other complaint', async () => {
  for (const [complaint, told] of [
    ['pages-1.img: Bad message\n', 'pages-1.img: Bad message'],
    ['CRIU has ended: Success\n', undefined],
    ['', undefined],
  ] as const) {
    const later = await bringLater(hostOf().host, run);
    writeFileSync(join(runDir, 'later', `${plans()[0]}.log`), complaint);
    expect([await later.giveUp(), plans()]).toEqual([told, []]);
  }
  expect(await (await bringLater(hostOf().host, run)).giveUp()).toBeUndefined();
});

test('memory is waited for by the slot; where it did not come the sandbox ends', async () => {
  const idle = Bun.spawn(['sleep', '600']);
  const source = { slotName: 's1', group: { processes: () => [idle.pid] } } as never;
  const nothing = hostOf();
  await memoryIsThere(nothing.host, source);
  await bringLater(nothing.host, { ...run, slotName: 's11' });
  await memoryIsThere(nothing.host, source);
  expect(nothing.asked.map(([what]) => what)).toEqual(['bring-later']);
  const { host, asked } = hostOf({ status: 0, output: '' }, { status: 0, output: '' }, { status: 1, output: 'ended' });
  await bringLater(host, run);
  await memoryIsThere(host, source);
  expect(asked.map(([what]) => what)).toEqual(['bring-later', 'wait-later']);
  expect(idle.killed).toBe(false);
  await expect(memoryIsThere(host, source)).rejects.toMatchObject({
    message: 'the memory of the sandbox did not all come back: ended',
    detail: sandboxEnded,
  });
  expect(await idle.exited).not.toBe(0);
});

test('memory is lost if the process that brought it ended or complained, and not if that is unknown', async () => {
  const answers = [0, 0, 1, 137, 0].map(status => ({ status, output: status === 1 ? 'gone\n' : '' }));
  const { host } = hostOf(...answers);
  expect(await whyMemoryLost(host, 's1')).toBeUndefined();
  await bringLater(host, run);
  const why = () => whyMemoryLost(host, 's1');
  expect(await why()).toBeUndefined();
  expect(await why()).toBe('gone');
  await expect(why()).rejects.toThrow('could not be found out');
  // A process that was killed has left only the file for its complaints.
  const log = join(runDir, 'later', `${plans()[0]}.log`);
  writeFileSync(log, '');
  expect(await why()).toBe('it was killed');
  writeFileSync(log, 'pages-1.img: Bad message\n');
  expect([await why(), await whyMemoryLost(host, 's11')]).toEqual(['pages-1.img: Bad message', undefined]);
});

test('plans of a slot are forgotten with what was complained of, and those of slots that nobody is in', async () => {
  expect(forgetLater(runDir, 's1')).toBeUndefined();
  forgetLaterBut(runDir, new Set());
  const { host } = hostOf();
  for (const slotName of ['s1', 's1', 's11', 's2']) await bringLater(host, { ...run, slotName });
  const [first] = plans();
  writeFileSync(join(runDir, 'later', `${first}.log`), 'pages-1.img: Bad message\n');
  expect(forgetLater(runDir, 's1')).toBe('pages-1.img: Bad message');
  expect(plans().map(name => name.split('-')[0])).toEqual(['s11', 's2']);
  forgetLaterBut(runDir, new Set(['s2']));
  expect(plans().map(name => name.split('-')[0])).toEqual(['s2']);
  expect(existsSync(runDir)).toBe(true);
});
