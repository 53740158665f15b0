import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { HelperError, startHelperProcess } from './helper-process.ts';

const binary = join(import.meta.dir, '../../../dist/helper');

let dir = '';
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'atoll-helper-'))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** The helper, or another program in its place. `lost`: how often its loss was reported. */
async function helper(program = binary) {
  const lost = Promise.withResolvers<void>();
  let losses = 0;
  const started = await startHelperProcess({ binary: program, runDir: dir, onLost: () => (losses++, lost.resolve()) });
  return { ...started, losses: () => losses, lost: lost.promise, [Symbol.asyncDispose]: started.stop };
}

/** A program that speaks the helper's protocol. `body`: what it does with the `socket`, once it is connected. */
function program(body: string): string {
  const path = join(dir, 'program');
  writeFileSync(
    path,
    `#!${process.execPath}
    let take = () => {};
    const later = () => new Promise(resolve => setTimeout(resolve, 5));
    const events = { data: (_, bytes) => take(String(bytes)), close: () => process.exit() };
    const socket = await Bun.connect({ unix: process.argv[2], socket: events });
    ${body}`,
  );
  chmodSync(path, 0o755);
  return path;
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

test('it starts, carries out requests side by side, and ends when told to, without a report of loss', async () => {
  const it = await helper();
  expect(it.alive()).toBe(true);
  expect(existsSync(`/proc/${it.mountsPid}/root`)).toBe(true);
  expect(readFileSync(`/proc/${it.mountsPid}/status`, 'utf8')).toContain(`PPid:\t${it.pid}\n`);
  expect(readdirSync(dir).filter(name => name.endsWith('.sock'))).toEqual([]);
  const say = (word: string, script = `echo ${word}`) => it.request(['spawn', '5000', '', '', 'sh', '-c', script]);
  const fifo = join(dir, 'fifo');
  const answers = await Promise.all([
    say('', `mkfifo ${fifo}; touch ${fifo}.is; cat ${fifo}`),
    say('', `until [ -e ${fifo}.is ]; do sleep 0.01; done; echo first > ${fifo}; echo second`),
    say('third'),
  ]);
  expect(answers.map(([, output]) => output?.trim())).toEqual(['first', 'second', 'third']);
  await it.stop();
  expect(it.alive()).toBe(false);
  expect(it.losses()).toBe(0);
  expect(existsSync(`/proc/${it.pid}`)).toBe(false);
});

test('a refusal of the kernel becomes its error, and a request that can’t be sent is refused', async () => {
  await using it = await helper();
  const error = (await failure(it.request(['disk-mount', join(dir, 'missing'), dir]))) as HelperError;
  expect(error).toBeInstanceOf(HelperError);
  expect(error).toMatchObject({ code: 'internal', errno: 2, fields: { errno: 2 } });
  expect(error.message).toStartWith('disk-mount: ');
  for (const field of ['two\nlines', 'nul\0'])
    expect(await failure(it.request(['unmount', field]))).toMatchObject({ code: 'invalid' });
});

test('bytes that the socket does not take at once are sent when it takes more', async () => {
  await using it = await helper();
  process.kill(it.pid, 'SIGSTOP');
  const long = `${dir}${'/.'.repeat(1800)}/missing`;
  const requests = Array.from({ length: 200 }, () => it.request(['unmount', long]));
  process.kill(it.pid, 'SIGCONT');
  expect((await Promise.all(requests)).flat().join('')).toBe('');
});

test('the ends of processes and of programs’ output are reported by tag', async () => {
  await using it = await helper();
  const watched = Bun.spawn(['cat'], { stdin: 'pipe' });
  const [exited, other] = [it.exited('its-tag'), it.exited('another')];
  await it.request(['watch', 'its-tag', `${watched.pid}`]);
  watched.kill();
  await exited;
  const closed = it.closed('program');
  expect((await it.request(['start', 'program', '5000', '', '', 'echo', 'started']))[1]?.trim()).toBe('started');
  await closed;
  expect(Bun.peek.status(other)).toBe('pending');
});

test('a helper that ends fails what waits and what comes after, and is reported once', async () => {
  const it = await helper();
  const waiting = failure(it.request(['spawn', '60000', '', '', 'sleep', '60']));
  process.kill(it.pid, 'SIGKILL');
  expect(await waiting).toMatchObject({ code: 'unavailable', detail: 'part_lost' });
  await it.lost;
  expect(it.alive()).toBe(false);
  expect(await failure(it.request(['unmount', dir]))).toMatchObject({ code: 'unavailable', detail: 'part_lost' });
  await it.stop();
  expect(it.losses()).toBe(1);
});

test('answers are put together from pieces, and events that nobody knows are passed over', async () => {
  const path = program(`
    let asked = '';
    // All three have come, in however many pieces.
    take = async text => {
      asked += text;
      if (asked.split('\\n').length <= 3) return;
      take = () => {};
      const begin = ['!\\tnew\\tthing\\n!', '\\tclosed\\tnobody\\n2\\to', 'k\\tä'];
      for (const piece of [...begin, '\\tb\\n1\\terr\\t5', '\\n3\\tok\\n']) {
        socket.write(piece);
        await later();
      }
    };
    socket.write('!\\tready\\t42\\n');`);
  await using it = await helper(path);
  expect(it.mountsPid).toBe(42);
  const [first, second] = [failure(it.request(['a'])), it.request(['b'])];
  expect(await it.request(['c'])).toEqual([]);
  expect(await second).toEqual(['ä', 'b']);
  expect(await first).toMatchObject({ errno: 5, message: 'failed' });
});

test('a program that ends is reported as lost, whoever still holds its socket', async () => {
  const path = program(`
    socket.write('!\\tready\\t1\\n');
    take = () => process.exit(3);`);
  const it = await helper(path);
  expect(await failure(it.request(['a']))).toMatchObject({ detail: 'part_lost' });
  expect(it.losses()).toBe(1);
});

test('one that does not start fails within seconds, and leaves no socket', async () => {
  jest.useFakeTimers();
  try {
    const started = failure(startHelperProcess({ binary: '/bin/true', runDir: dir, onLost() {} }));
    jest.advanceTimersByTime(4999);
    expect(readdirSync(dir)).toHaveLength(1);
    jest.advanceTimersByTime(1);
    const error = await started;
    expect(error).toBeInstanceOf(AtollError);
    expect(error).toMatchObject({ code: 'internal', message: 'the native helper did not start' });
    expect(readdirSync(dir)).toEqual([]);
  } finally {
    jest.useRealTimers();
  }
});
