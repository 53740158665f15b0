import { afterEach, expect, jest, test } from 'bun:test';
import { fstatSync } from 'node:fs';
import { closeFile, streamPair } from '../files.ts';
import { Backlog } from './backlog.ts';
import { Carried } from './carried.ts';

const KiB = 1 << 10;
const windowBytes = 256 * KiB;

const undo: (() => void)[] = [];
afterEach(() => {
  jest.useRealTimers();
  for (const step of undo.splice(0)) step();
});

type SceneOptions = {
  isOwn?: boolean;
  backlog?: Backlog;
  /** The local side reads its bytes. */
  reads?: boolean;
};

/** A carried connection: its messages to the other side, and its local side. */
async function scene({ isOwn = false, backlog = new Backlog(), reads = true }: SceneOptions = {}) {
  const [own, given] = streamPair();
  const said: string[] = [];
  const state = { sent: 0, credit: 0, isCrowded: false, pieceMax: 0, text: '' };
  const local = { got: 0, text: '', isEnded: false, isClosed: false };
  const carried = new Carried(own, isOwn, backlog, {
    data(bytes) {
      state.sent += bytes.length;
      state.pieceMax = Math.max(state.pieceMax, bytes.length);
      if (bytes.length < 100) state.text += Buffer.from(bytes).toString();
    },
    end: () => void said.push('end'),
    reset: () => void said.push('reset'),
    credit: bytes => void (state.credit += bytes),
    isCrowded: () => state.isCrowded,
    waits: () => void said.push('waits'),
    done: () => void said.push('done'),
  });
  const options = {
    ...{ fd: given, allowHalfOpen: true },
    socket: {
      open: (socket: Bun.Socket) => void (reads || socket.pause()),
      data(_: Bun.Socket, bytes: Buffer) {
        local.got += bytes.length;
        if (bytes.length < 100) local.text += bytes.toString();
      },
      drain: () => void send(),
      end: () => void (local.isEnded = true),
      close: () => void (local.isClosed = true),
      error() {},
    },
  };
  const side = (await Bun.connect(options as never)) as unknown as Bun.Socket;
  let rest: Buffer = Buffer.alloc(0);
  const send = (bytes?: Buffer) => {
    if (bytes) rest = bytes;
    if (rest.length > 0) rest = rest.subarray(Math.max(side.write(rest), 0));
  };
  undo.push(() => (carried.reset(), side.terminate()));
  return { carried, said, state, local, side, send, own };
}
type Scene = Awaited<ReturnType<typeof scene>>;

const until = async (holds: () => boolean) => {
  for (let turns = 0; !holds(); turns++) {
    if (turns > 20_000) throw new Error('it does not come');
    await new Promise(resolve => setImmediate(resolve));
  }
};
/** Resolves when nothing moves any more. */
const settled = async ({ state, local }: Pick<Scene, 'state' | 'local'>) => {
  for (let before = ''; before !== JSON.stringify([state, local]); await Bun.sleep(10))
    before = JSON.stringify([state, local]);
};
const bytes = (count: number) => Buffer.alloc(count, 'x');

test('bytes of either side arrive, and the connection is over when both have ended', async () => {
  const { carried, said, state, local, side } = await scene();
  side.write('hello');
  await until(() => state.text === 'hello');
  expect(carried.receive(Buffer.from('answer'))).toBe(true);
  await until(() => local.text === 'answer');
  side.shutdown();
  await until(() => said.includes('end'));
  expect(said).toEqual(['end']);
  carried.receiveEnd();
  await until(() => said.includes('done') && (local.isEnded || local.isClosed));
  expect([said, carried.wasReset()]).toEqual([['end', 'done'], false]);
  // A finished connection ignores it.
  carried.receiveReset();
  carried.reset();
  carried.goOn();
  expect([carried.receive(bytes(1)), said, carried.wasReset()]).toEqual([true, ['end', 'done'], false]);
});

test('the other side may end first', async () => {
  const { carried, said, local, side } = await scene();
  carried.receive(Buffer.from('last'));
  carried.receiveEnd();
  await until(() => local.isEnded);
  expect([local.text, said]).toEqual(['last', []]);
  // The sender has ended, and sends all the same.
  expect(carried.receive(bytes(1))).toBe(false);
  side.end();
  await until(() => said.includes('done'));
  expect(said).toEqual(['end', 'done']);
});

test('no more is sent than the other side takes, and nothing is lost', async () => {
  const { carried, said, state, local, side, send } = await scene();
  send(bytes(windowBytes + 100 * KiB));
  await until(() => state.sent === windowBytes);
  await settled({ state, local });
  expect([state.sent, state.pieceMax]).toEqual([windowBytes, 64 * KiB]);
  side.shutdown();
  carried.receiveCredit(10);
  expect(state.sent).toBe(windowBytes + 10);
  expect(said).toEqual([]);
  carried.receiveCredit(windowBytes);
  await until(() => state.sent === windowBytes + 100 * KiB && said.includes('end'));
});

test('an end after waiting bytes comes after them', async () => {
  const { carried, said, state, send, side, local } = await scene();
  send(bytes(windowBytes + 10));
  await until(() => state.sent === windowBytes);
  side.shutdown();
  await settled({ state, local });
  carried.receiveCredit(9);
  expect([state.sent, said]).toEqual([windowBytes + 9, []]);
  carried.receiveCredit(100);
  await until(() => said.length > 0);
  expect([state.sent, said]).toEqual([windowBytes + 10, ['end']]);
});

test('while the carrier has enough to send it waits, and goes on when told to', async () => {
  const { carried, said, state, side } = await scene();
  state.isCrowded = true;
  side.write('hello');
  await until(() => said.includes('waits'));
  expect(state.sent).toBe(0);
  carried.goOn();
  expect([state.sent, said.length > 1]).toEqual([0, true]);
  state.isCrowded = false;
  carried.goOn();
  expect(state.text).toBe('hello');
  side.write('again');
  await until(() => state.text === 'helloagain');
  carried.pause();
  side.write('later');
  await settled({ state, local: { got: 0, text: '', isEnded: false, isClosed: false } });
  expect(state.text).toBe('helloagain');
  carried.goOn();
  await until(() => state.text === 'helloagainlater');
});

test('the other side gets credit for what the local side has taken, in steps', async () => {
  const { carried, state, local } = await scene();
  carried.receive(bytes(64 * KiB - 1));
  await settled({ state, local });
  expect(state.credit).toBe(0);
  carried.receive(bytes(1));
  await until(() => state.credit === 64 * KiB);
  carried.receive(bytes(64 * KiB));
  await until(() => state.credit === 128 * KiB);
});

test('a local side that does not read fills only its window, and gets everything when it does', async () => {
  const { carried, state, local, side } = await scene({ reads: false });
  let given = 0;
  while (given < 4 * windowBytes && carried.receive(bytes(32 * KiB))) {
    given += 32 * KiB;
    await Bun.sleep(0);
  }
  // A window, and the bytes in the kernel's buffers.
  expect(given).toBeWithin(windowBytes, 4 * windowBytes);
  carried.receiveEnd();
  side.resume();
  await until(() => local.got === given && local.isEnded);
  expect(state.credit).toBeLessThanOrEqual(given);
});

test('what waits for a local side counts in the process until it is taken, or given up', async () => {
  for (const how of ['read', 'reset', 'closed'] as const) {
    const backlog = new Backlog(windowBytes);
    const { carried, local, side, said } = await scene({ reads: false, backlog });
    let given = 0;
    for (; carried.receive(bytes(32 * KiB)); given += 32 * KiB) await Bun.sleep(0);
    expect([how, backlog.isHigh]).toEqual([how, true]);
    if (how === 'read') side.resume();
    else if (how === 'reset') carried.receiveReset();
    else side.terminate();
    await until(() => !backlog.isHigh && (how !== 'read' || local.got === given));
    // It is no longer behind, whoever comes next.
    let others = 0;
    backlog.add({ giveUp: () => void others++ }, windowBytes + 1);
    expect([others, carried.wasReset(), said.includes('done')]).toEqual([1, how === 'reset', how !== 'read']);
  }
});

test('if much waits in the process, others may get less far ahead', async () => {
  const backlog = new Backlog(1024 * KiB);
  const { carried, state, local } = await scene({ backlog });
  const behind = { giveUp() {} };
  carried.receive(bytes(1));
  await until(() => local.got === 1);
  backlog.add(behind, 600 * KiB);
  carried.receive(bytes(windowBytes - 2));
  await until(() => local.got === windowBytes - 1);
  await settled({ state, local });
  // A quarter of the window is ahead.
  expect(state.credit).toBeWithin(32 * KiB, 64 * KiB + 1);
  backlog.remove(behind, 600 * KiB, true);
  carried.receive(bytes(1));
  await until(() => state.credit >= 192 * KiB);
});

test('a break of either side is one of the other', async () => {
  const far = await scene();
  far.carried.receiveReset();
  await until(() => far.local.isClosed);
  expect([far.said, far.carried.wasReset()]).toEqual([['done'], true]);
  const near = await scene();
  near.carried.reset();
  await until(() => near.local.isClosed);
  expect([near.said, near.carried.wasReset()]).toEqual([['done', 'reset'], false]);
  const full = await scene();
  full.carried.giveUp();
  expect([full.said, full.carried.wasReset()]).toEqual([['done', 'reset'], true]);
});

test('a local side that is gone is an end and then a break: nobody reads any more', async () => {
  const { carried, said, state, side } = await scene();
  side.write('last');
  side.terminate();
  await until(() => said.includes('done'));
  expect([state.text, said.at(-1)]).toEqual(['last', 'reset']);
  expect(carried.receive(bytes(windowBytes + 1))).toBe(true);
});

test('bytes that a local side sent before it left are sent first', async () => {
  for (const isCrowded of [false, true]) {
    const { carried, said, state, send, side, local } = await scene();
    send(bytes(windowBytes + 10));
    await until(() => state.sent === windowBytes);
    side.terminate();
    await settled({ state, local });
    expect(said).toEqual([]);
    state.isCrowded = isCrowded;
    carried.receiveCredit(100);
    if (isCrowded) {
      expect(said).toEqual(['waits']);
      state.isCrowded = false;
      carried.goOn();
    }
    await until(() => said.includes('done'));
    expect([state.sent, said.filter(what => what !== 'waits')]).toEqual([windowBytes + 10, ['end', 'done', 'reset']]);
  }
});

test('a sender that is gone after its end leaves a local side that reads, and ends for it', async () => {
  const { carried, said, local, side } = await scene();
  carried.receive(Buffer.from('last'));
  carried.receiveEnd();
  await until(() => local.isEnded);
  side.write('to nobody');
  carried.receiveReset();
  await until(() => local.isClosed);
  expect([local.text, said]).toEqual(['last', ['done']]);
});

test('a sender that is gone leaves a local side that does not read for a while', async () => {
  const { carried, said, local, side } = await scene({ reads: false });
  while (carried.receive(bytes(64 * KiB))) await Bun.sleep(0);
  jest.useFakeTimers();
  carried.receiveEnd();
  carried.receiveReset();
  carried.receiveReset();
  jest.advanceTimersByTime(9_999);
  expect(said).toEqual([]);
  jest.advanceTimersByTime(1);
  // Nobody who is gone is told anything.
  expect(said).toEqual(['done']);
  jest.useRealTimers();
  side.resume();
  await until(() => local.isClosed);
});

test('a sender that is gone leaves a local side of this process alone', async () => {
  const { carried, said, local, side } = await scene({ isOwn: true });
  carried.receive(Buffer.from('last'));
  carried.receiveEnd();
  await until(() => local.isEnded);
  carried.receiveReset();
  await settled({ state: { sent: 0, credit: 0, isCrowded: false, pieceMax: 0, text: '' }, local });
  expect([said, local.isClosed]).toEqual([[], false]);
  side.end();
  await until(() => said.includes('done'));
  expect(said).toEqual(['done']);
});

test('a descriptor that is no socket is closed, and that is a break', async () => {
  const [own, given] = streamPair();
  closeFile(own);
  closeFile(given);
  const said: string[] = [];
  const note = (what: string) => () => void said.push(what);
  const sink = { data() {}, end: note('end'), reset: note('reset'), credit() {}, isCrowded: () => false, waits() {} };
  const carried = new Carried(own, false, new Backlog(), { ...sink, done: note('done') });
  await until(() => said.length === 2);
  expect([said, carried.wasReset()]).toEqual([['done', 'reset'], false]);
  expect(() => fstatSync(own)).toThrow('EBADF');
});

test('a connection that is over before its socket is open leaves none', async () => {
  const [own, given] = streamPair();
  const said: string[] = [];
  const sink = { data() {}, end() {}, reset() {}, credit() {}, isCrowded: () => false, waits() {} };
  const carried = new Carried(own, false, new Backlog(), { ...sink, done: () => void said.push('done') });
  carried.receive(bytes(10));
  carried.receiveReset();
  expect(said).toEqual(['done']);
  const closed = Promise.withResolvers<void>();
  const socket = { data() {}, close: () => closed.resolve(), error() {} };
  await Bun.connect({ fd: given, socket } as never);
  await closed.promise;
});

test('bytes that come before its socket is open wait for it', async () => {
  const [own, given] = streamPair();
  const sink = { data() {}, end() {}, reset() {}, credit() {}, isCrowded: () => false, waits() {}, done() {} };
  const carried = new Carried(own, false, new Backlog(), sink);
  carried.receive(Buffer.from('early '));
  carried.receive(Buffer.from('birds'));
  carried.receiveEnd();
  const got = Promise.withResolvers<string>();
  let text = '';
  const socket = {
    data: (_: Bun.Socket, part: Buffer) => void (text += part.toString()),
    end: () => got.resolve(text),
  };
  await Bun.connect({ fd: given, socket: { ...socket, error() {} } } as never);
  expect(await got.promise).toBe('early birds');
  carried.reset();
});
