import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { helperOf, type Helper } from './helper.ts';
import { kindByTime, programsAtOnce, sparePlaces, type ProgramKind } from './program-places.ts';

const total = Object.values(programsAtOnce).reduce((sum, atOnce) => sum + atOnce, 0);

/** A helper whose programs end when they are told to. */
function idleHelper() {
  const underWay: (() => void)[] = [];
  let ends = 0;
  const closed = new Map<string, () => void>();
  const helper = helperOf({
    pid: 1,
    mountsPid: 1,
    request: () => new Promise(resolve => underWay.push(() => resolve(['0', '']))),
    exited: () => new Promise(() => {}),
    closed: tag => new Promise(resolve => closed.set(tag, resolve)),
    alive: () => true,
    stop: async () => {},
  });
  return {
    helper,
    closed,
    /** Programs that run now. */
    running: () => underWay.length - ends,
    /** Ends those that have run for longest, and lets others begin. */
    async end(count: number) {
      for (; count > 0; count--) underWay[ends++]?.();
      await Bun.sleep(0);
    },
  };
}

const spawn = (helper: Helper, kind: ProgramKind, count: number) =>
  Array.from({ length: count }, () => helper.spawn(['true'], { timeoutMs: 1_000, kind }));

test('all programs of one kind leave the places of the others', async () => {
  for (const kind of Object.keys(programsAtOnce) as ProgramKind[]) {
    const { helper, running, end } = idleHelper();
    const programs = spawn(helper, kind, 100);
    await Bun.sleep(0);
    const most = programsAtOnce[kind] - (kind === 'dump' || kind === 'check' ? sparePlaces[kind] : 0);
    expect(running()).toBe(most);
    for (const other of Object.keys(programsAtOnce) as ProgramKind[])
      if (other !== kind) programs.push(...spawn(helper, other, 1));
    await Bun.sleep(0);
    expect(running()).toBe(most + Object.keys(programsAtOnce).length - 1);
    while (running() > 0) await end(1);
    for (const { status } of await Promise.all(programs)) expect(status).toBe(0);
  }
});

test.each(['dump', 'check'] as const)('all of kind %s that are one team’s leave places for others’', async kind => {
  const { helper, running, end } = idleHelper();
  const programsOf = (teamId: string, count: number) =>
    Array.from({ length: count }, () => helper.spawn(['true'], { timeoutMs: 1_000, kind, teamId }));
  const programs = programsOf('crowd', 100);
  const spare = sparePlaces[kind];
  for (let team = 0; team < spare; team++) programs.push(...programsOf(`team-${team}`, 2));
  await Bun.sleep(0);
  expect(running()).toBe(programsAtOnce[kind]);
  while (running() > 0) await end(1);
  expect(await Promise.all(programs)).toHaveLength(100 + 2 * spare);
});

test('the helper has a place for every program that is let to it', () => {
  const source = readFileSync(join(import.meta.dir, '../../../native/helper.c'), 'utf8');
  expect(Number(/\bchildrenMax = (\d+),/.exec(source)?.[1])).toBe(total);
});

test('a program that starts a sandbox has its place until what it left has closed its output', async () => {
  const { helper, closed, running, end } = idleHelper();
  const { start } = programsAtOnce;
  const started = Array.from({ length: start + 1 }, (_, n) => helper.start(`s${n}`, ['true'], { timeoutMs: 1_000 }));
  await end(start);
  expect((await started[0])?.status).toBe(0);
  expect(running()).toBe(0);
  closed.get('s0')?.();
  await Bun.sleep(0);
  expect(running()).toBe(1);
  await end(1);
  expect((await started[start])?.status).toBe(0);
});

test('the place of a start that fails is given back', async () => {
  const request = async () => {
    throw new Error('no memory');
  };
  const never = () => new Promise<void>(() => {});
  const rest = { pid: 1, mountsPid: 1, exited: never, closed: never, alive: () => true, stop: async () => {} };
  const helper = helperOf({ ...rest, request });
  for (let n = 0; n < 100; n++)
    await expect(helper.start('tag', ['true'], { timeoutMs: 1_000 })).rejects.toThrow('no memory');
});

test('programs that may take long do not take the places of short ones', () => {
  expect(kindByTime(20_000)).toBe('short');
  expect(kindByTime(10 * 60_000)).toBe('long');
});
