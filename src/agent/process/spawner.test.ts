import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { createLog } from '../../base/telemetry/log.ts';
import { openSpawner } from './spawner.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const program = {
  argv: ['/bin/echo', 'ä'],
  environment: { A: '1', B: '' },
  uid: 1000,
  gid: 100,
  groups: [4, 27],
  flags: 3,
  cwd: '/home',
};
const [requestStart, requestSignal, requestLook, requestName] = [1, 2, 3, 4];
const [replyStarted, replyFailed, replyEnded, replyRuns] = [1, 2, 3, 4];

/** A spawner whose process 1 is the test: it takes as much of each request as it has `room` for. */
function opened() {
  const state = { room: Number.POSITIVE_INFINITY, sends: 0, logged: 0 };
  let taken = Buffer.alloc(0);
  const descriptors: number[][] = [];
  const native = {
    send(socket: number, bytes: Uint8Array, passed: number[]) {
      expect(socket).toBe(4);
      state.sends++;
      const part = bytes.subarray(0, state.room);
      state.room -= part.length;
      taken = Buffer.concat([taken, part]);
      if (part.length > 0) descriptors.push(passed);
      return part.length;
    },
  };
  const parts: Uint8Array[] = [];
  let wake = () => {};
  const replies = async function* () {
    for (;;) {
      const part = parts.shift();
      if (part) yield part;
      else await new Promise<void>(resolve => (wake = resolve));
    }
  };
  let reads = 0;
  const spawner = openSpawner(
    native,
    createLog('error', () => state.logged++),
    () => (reads++, replies()),
  );
  const says = (...bytes: Uint8Array[]) => {
    parts.push(...bytes);
    wake();
  };
  /** Whole requests taken since the last call: their words, and what follows these. */
  const took = () => {
    const requests: { words: number[]; rest: string }[] = [];
    while (taken.length >= 4 && taken.length >= taken.readUInt32LE(0)) {
      const request = taken.subarray(0, taken.readUInt32LE(0));
      taken = taken.subarray(request.length);
      const words = Array.from({ length: 8 }, (_, index) => request.readUInt32LE(4 * index));
      requests.push({ words, rest: request.toString('latin1', 32) });
    }
    return requests;
  };
  return { spawner, state, says, took, descriptors, reads: () => reads };
}

function reply(kind: number, about: number, value: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt32LE(kind, 0);
  bytes.writeUInt32LE(about, 4);
  bytes.writeInt32LE(value, 8);
  return bytes;
}
const turn = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

test('a program is asked for with all that it has, and its start and end are heard', async () => {
  const { spawner, took, says, descriptors, reads } = opened();
  expect(reads()).toBe(0);
  const started = spawner.start(program, [7, 8, 9]);
  const [{ words, rest } = { words: [], rest: '' }] = took();
  const texts = Buffer.from('/home\0/bin/echo\0ä\0A=1\0B=\0').toString('latin1');
  expect(words).toEqual([40 + texts.length, requestStart, 1, 3, 1000, 100, 2, 2]);
  expect([rest, descriptors]).toEqual([`\x04\0\0\0\x1b\0\0\0${texts}`, [[7, 8, 9]]]);
  says(reply(replyStarted, 1, 1234));
  const child = await started;
  expect(child.pid).toBe(1234);
  // The end of another program is not its own.
  says(reply(replyEnded, 99, 0), reply(replyEnded, 1234, 3 << 8));
  expect([await child.ended, reads()]).toEqual([{ exitCode: 3 }, 1]);
});

test('each program gets its own answer, in whichever order and pieces they come', async () => {
  const { spawner, says, took, reads } = opened();
  const [first, second, third] = [1, 2, 3].map(() => spawner.start(program, []));
  expect(took().map(({ words }) => words[2])).toEqual([1, 2, 3]);
  const bytes = Buffer.concat([
    ...[reply(replyStarted, 2, 20), reply(replyFailed, 3, 11), reply(replyStarted, 1, 10)],
    ...[reply(replyEnded, 20, 9), reply(replyEnded, 10, 0)],
  ]);
  third?.catch(() => {});
  for (let at = 0; at < bytes.length; at += 7) says(bytes.subarray(at, at + 7));
  const children = [await first, await second];
  expect(children.map(child => child?.pid)).toEqual([10, 20]);
  expect(await Promise.all(children.map(child => child?.ended))).toEqual([{ exitCode: 0 }, { signal: 9 }]);
  await expect(third).rejects.toMatchObject({ code: 'rate_limited' });
  expect(reads()).toBe(1);
});

test.each([
  [11, 'rate_limited', 'no more processes'],
  [7, 'invalid', 'too long'],
  [2, 'internal', 'errno 2'],
])('a start that fails with %d is %s', async (errno, code, message) => {
  const { spawner, says } = opened();
  const failed = spawner.start(program, []);
  says(reply(replyFailed, 1, errno));
  await expect(failed).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
});

test('a program of an agent before this one is looked for, and runs or has ended', async () => {
  const { spawner, says, took } = opened();
  const [runs, gone] = [spawner.adopt(50), spawner.adopt(51)];
  expect(took().map(({ words }) => words.slice(0, 4))).toEqual([
    [32, requestLook, 50, 0],
    [32, requestLook, 51, 0],
  ]);
  says(reply(replyRuns, 50, 1), reply(replyRuns, 51, 0));
  const child = await runs;
  expect([child?.pid, await gone]).toEqual([50, undefined]);
  says(reply(replyEnded, 50, 15));
  expect(await child?.ended).toEqual({ signal: 15 });
});

test('answers about what nobody asked for change nothing', async () => {
  const { spawner, says } = opened();
  const started = spawner.start(program, []);
  says(reply(replyStarted, 9, 1), reply(replyFailed, 9, 1), reply(replyRuns, 9, 1), reply(77, 9, 1));
  says(reply(replyStarted, 1, 12));
  expect((await started).pid).toBe(12);
});

test('signals and the name of the host are sent by themselves', () => {
  const { spawner, took, reads } = opened();
  spawner.signal(1234, 15);
  spawner.nameHost('höst');
  expect(took()).toEqual([
    { words: [32, requestSignal, 1234, 15, 0, 0, 0, 0], rest: '' },
    { words: [37, requestName, 0, 0, 0, 0, 0, 0], rest: Buffer.from('höst').toString('latin1') },
  ]);
  expect(reads()).toBe(0);
});

test('a request that finds no room is sent again, the rest of it alone, and those behind it wait', () => {
  const { spawner, state, took, descriptors } = opened();
  state.room = 0;
  void spawner.start(program, [7]);
  spawner.signal(1, 9);
  expect([state.sends, took()]).toEqual([1, []]);
  state.room = 10;
  jest.advanceTimersByTime(2);
  expect([took(), descriptors]).toEqual([[], [[7]]]);
  jest.advanceTimersByTime(2);
  state.room = Number.POSITIVE_INFINITY;
  jest.advanceTimersByTime(2);
  expect(took().map(({ words }) => words[1])).toEqual([requestStart, requestSignal]);
  // Its descriptors went with its first byte.
  expect(descriptors).toEqual([[7], [], []]);
  const { sends } = state;
  jest.advanceTimersByTime(100);
  expect(state.sends).toBe(sends);
});

test('an agent that process 1 has given up ends', async () => {
  const exit = jest.spyOn(process, 'exit').mockImplementation((() => {}) as never);
  try {
    const log = { logged: 0 };
    const nothing = async function* () {};
    const spawner = openSpawner(
      { send: () => 1000 },
      createLog('error', () => log.logged++),
      nothing,
    );
    void spawner.start(program, []);
    await turn();
    expect([exit.mock.calls, log.logged]).toEqual([[[1]], 1]);
  } finally {
    exit.mockRestore();
  }
});
