import { afterEach, expect, test } from 'bun:test';
import { groupsOf } from '../../src/supervisor/control-groups.ts';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../src/base/error.ts';
import { createLog, silentLog } from '../../src/base/telemetry/log.ts';
import { makePartGroups } from '../../src/supervisor/control-groups.ts';
import { commandOf } from '../../src/supervisor/program.ts';
import { type Part, type PartOptions, startPart } from '../../src/supervisor/part.ts';
import { waitFor } from '../support/process.ts';

type About = { pid: number; answer?: string; kept?: string; left?: number };

const littlePart = [process.execPath, join(import.meta.dir, 'support/little-part.ts')];
const parts: Part<About>[] = [];
afterEach(async () => {
  await Promise.all(parts.splice(0).map(part => part.stop()));
});

function begin(orders: Record<string, unknown> | (() => unknown), more: Partial<PartOptions<About>> = {}) {
  const seen = {
    ready: [] as About[],
    restarts: [] as string[],
    givenUp: [] as string[],
    phases: [] as string[],
    asked: [] as unknown[],
  };
  const part = startPart<About>({
    name: 'api',
    command: () => littlePart,
    environment: {},
    settings: typeof orders === 'function' ? orders : () => orders,
    stallLooksMax: 2,
    log: silentLog,
    readAbout: about => about as About,
    onPhase: text => void seen.phases.push(text),
    async onAsk(what, value) {
      seen.asked.push([what, value]);
      if (what !== 'allowed') throw new AtollError('forbidden', `${what} is not allowed`);
    },
    onReady: about => void seen.ready.push(about),
    onRestart: reason => void seen.restarts.push(reason),
    onGivenUp: error => void seen.givenUp.push(error.message),
    ...more,
  });
  parts.push(part);
  return { part, seen };
}

const isGone = (pid: number) => !existsSync(`/proc/${pid}`);

test('a part serves, is told of changes, asks for what it may not do, and ends when it is told to', async () => {
  const { part, seen } = begin({ doing: 'serve', ask: 'allowed' });
  const about = await part.ready;
  expect(about.answer).toBe('done');
  expect(seen.phases).toEqual(['starting']);
  expect(seen.asked).toEqual([['allowed', { value: 1 }]]);
  await part.stop();
  expect(isGone(about.pid)).toBe(true);
  expect(seen.restarts).toEqual([]);
  const { part: other } = begin({ doing: 'serve', ask: 'seed' });
  expect((await other.ready).answer).toBe('seed is not allowed');
});

test('one that can’t stop what it has open says why, and the log has it', async () => {
  const lines: string[] = [];
  const { part } = begin({ doing: 'hold' }, { log: createLog('warn', line => void lines.push(line)) });
  await part.ready;
  await part.stop();
  expect(lines.map(line => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ level: 'warn', process: 'api', how: 'exit code 1', error: 'it can’t let go' }),
  ]);
});

test('what is no message of a part is nothing to who watches it, and settings of any form get there', async () => {
  const { part, seen } = begin({ doing: 'babble', ask: 'allowed', kept: new Map([['name', 'value']]) });
  expect(await part.ready).toMatchObject({ answer: 'done', kept: 'value' });
  expect(seen.phases).toEqual(['starting']);
  expect(seen.asked).toEqual([['allowed', { value: 1 }]]);
  expect(seen.restarts).toEqual([]);
});

test('one that was taken over says no more of itself, asks for no more than it may, and moves nobody’s cursor', async () => {
  let underWay = 0;
  const { part, seen } = begin(
    { doing: 'lie' },
    {
      async onAsk() {
        underWay++;
        await new Promise(() => {});
      },
    },
  );
  const about = await part.ready;
  part.update('lie');
  await waitFor('it to have lied', () => seen.phases.length === 2 && underWay > 0);
  expect(seen.phases[1]).toBe('lied MAINPID=1 [2J ');
  expect(seen.ready).toEqual([about]);
  expect(underWay).toBe(32);
  expect(seen.restarts).toEqual([]);
});

test('one whose message is longer than the most is not heard any more, and ended', async () => {
  let starts = 0;
  const { part, seen } = begin(() => ({ doing: ++starts === 1 ? 'serve' : starts === 2 ? 'overflow' : 'serve' }), {
    stallLooksMax: 60,
  });
  const { pid } = await part.ready;
  process.kill(pid, 'SIGKILL');
  await waitFor('it to serve again, after one that was ended', () => starts === 3 && seen.ready.at(-1)?.pid !== pid);
  expect(seen.restarts).toEqual(['ended', 'ended']);
}, 60_000);

test('one that takes more memory than its budget is ended and started again; the others’ budgets are their own', async () => {
  const budget = { memoryBytes: 256 << 20, tasksMax: 256 };
  await using groups = makePartGroups({ api: budget, edge: budget });
  const commandIn = (part: 'api' | 'edge') => () =>
    commandOf(littlePart, { rights: 'root', joinFiles: groups.joinFiles(part) });
  let starts = 0;
  const { part, seen } = begin(() => ({ doing: ++starts === 2 ? 'grow' : 'serve' }), {
    command: commandIn('api'),
    // On a busy machine it may take long to fill its memory, and shows no heartbeat meanwhile.
    stallLooksMax: 60,
  });
  const { part: other, seen: ofOther } = begin({ doing: 'serve' }, { command: commandIn('edge') });
  const [{ pid }, about] = await Promise.all([part.ready, other.ready]);
  expect(readFileSync(`/proc/${pid}/cgroup`, 'utf8')).toContain(`/${groupsOf(process.pid)}/api\n`);
  process.kill(pid, 'SIGKILL');
  await waitFor('it to serve after it was ended', () => seen.ready.length === 2, 30_000);
  expect([starts, seen.restarts]).toEqual([3, ['ended', 'ended']]);
  expect(ofOther.restarts).toEqual([]);
  expect(isGone(about.pid)).toBe(false);
  await Promise.all(parts.splice(0).map(each => each.stop()));
}, 60_000);

test('what one that was taken over leaves behind is gone before the next one begins, and when it has stopped', async () => {
  const budget = { memoryBytes: 256 << 20, tasksMax: 256, isAlone: true };
  await using groups = makePartGroups({ edge: budget });
  const command = () => commandOf(littlePart, { rights: 'root', joinFiles: groups.joinFiles('edge') });
  const { part, seen } = begin({ doing: 'leave' }, { command, onEnd: () => groups.clear('edge') });
  const { pid, left } = await part.ready;
  const name = () => readFileSync(`/proc/${left}/comm`, 'utf8');
  await waitFor('its program to have begun', () => ['setsid\n', 'sleep\n'].includes(name()));
  process.kill(pid, 'SIGKILL');
  await waitFor('it to serve again', () => seen.ready.length === 2);
  await waitFor('what it left to be gone', () => isGone(left ?? 0));
  const { left: other } = seen.ready[1] as About;
  expect(isGone(other ?? 0)).toBe(false);
  await Promise.all(parts.splice(0).map(each => each.stop()));
  await waitFor('what the other left to be gone', () => isGone(other ?? 0));
}, 60_000);

test('one that can’t start says why, and is not tried again', async () => {
  const { part, seen } = begin({ doing: 'fail' });
  await expect(part.ready).rejects.toThrow('it can’t start');
  expect(seen.restarts).toEqual([]);
  const { part: unset } = begin(() => {
    throw new AtollError('precondition', 'its settings can’t be made');
  });
  await expect(unset.ready).rejects.toMatchObject({ code: 'precondition' });
});

test('one that is killed is started again, with what it is to start with now', async () => {
  let starts = 0;
  const { part, seen } = begin(() => ({ doing: 'serve', start: ++starts }));
  const { pid } = await part.ready;
  process.kill(pid, 'SIGKILL');
  await waitFor('it to serve again', () => seen.ready.length === 2);
  expect(seen.restarts).toEqual(['ended']);
  expect(starts).toBe(2);
  expect(seen.ready[1]?.pid).not.toBe(pid);
});

test('one whose event loop turns no more is ended and started again: an endless loop, and a process that is stopped', async () => {
  const { part, seen } = begin({ doing: 'serve' });
  const { pid } = await part.ready;
  part.update('loop');
  await waitFor('it to be replaced', () => seen.ready.length === 2, 30_000);
  expect(seen.restarts).toEqual(['stalled']);
  expect(isGone(pid)).toBe(true);
  process.kill(seen.ready[1]?.pid as number, 'SIGSTOP');
  await waitFor('it to be replaced again', () => seen.ready.length === 3, 30_000);
  expect(seen.restarts).toEqual(['stalled', 'stalled']);
}, 60_000);

test('one that never stays is given up, with a sentence', async () => {
  let starts = 0;
  const { part, seen } = begin(() => ({ doing: ++starts === 1 ? 'serve' : 'fail' }), { endsMax: 3 });
  const { pid } = await part.ready;
  process.kill(pid, 'SIGKILL');
  await waitFor('it to be given up', () => seen.givenUp.length > 0, 30_000);
  expect(seen.givenUp).toEqual([
    "The platform's api has ended 4 times in a row and is not started again: it can’t start",
  ]);
  expect(starts).toBe(4);
}, 60_000);

test('a part ends with the process that watches it', async () => {
  const watcher = Bun.spawn([process.execPath, join(import.meta.dir, 'support/watcher.ts')], {
    stdout: 'pipe',
    stdin: 'ignore',
  });
  const reader = watcher.stdout.getReader();
  const pid = Number(Buffer.from((await reader.read()).value ?? []).toString());
  expect(isGone(pid)).toBe(false);
  watcher.kill('SIGKILL');
  await waitFor('the part to end', () => isGone(pid));
});
