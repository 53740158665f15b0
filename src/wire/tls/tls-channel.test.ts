import { expect, test } from 'bun:test';
import { closeFile, streamPair } from '../files.ts';
import { Backlog } from './backlog.ts';
import { FarEnds } from './far-ends.ts';
import { TlsChannel } from './tls-channel.ts';
import { frameKinds, tlsFrame, TlsFrameReader } from './tls-frame.ts';

const windowBytes = 256 << 10;

/** A socket that takes `takes` bytes, and the frames that it took. */
function socketOf(takes: number) {
  const it = { takes, taken: 0, isTerminated: false, bytesOf: new Map<number, number>(), resets: [] as number[] };
  const reader = new TlsFrameReader();
  const write = (bytes: Uint8Array) => {
    const written = bytes.subarray(0, it.takes);
    it.takes -= written.length;
    it.taken += written.length;
    reader.push(written, ({ kind, stream, body }) => {
      if (kind === frameKinds.data) it.bytesOf.set(stream, (it.bytesOf.get(stream) ?? 0) + body.length);
      if (kind === frameKinds.reset) it.resets.push(stream);
    });
    return written.length;
  };
  return { it, socket: { write, terminate: () => void (it.isTerminated = true) } };
}

/** A connected descriptor, opened. */
const opened = (fd: number, socket: Partial<Bun.SocketHandler<undefined>>) =>
  Bun.connect({ fd, allowHalfOpen: true, socket: { data() {}, error() {}, ...socket } } as never);

test('connections that send more than the line takes wait for it, and each gets its turn', async () => {
  const streams = 1_200;
  const { it, socket } = socketOf(0);
  const channel = new TlsChannel(socket);
  const content = Buffer.alloc(windowBytes, 'x');
  const locals: Bun.Socket<undefined>[] = [];
  for (let stream = 1; stream <= streams; stream++) {
    const [own, given] = streamPair();
    channel.send('{}', given);
    let sent = 0;
    const send = (local: Bun.Socket<undefined>) => {
      if (sent < content.length) sent += Math.max(local.write(content.subarray(sent)), 0);
    };
    locals.push((await opened(own, { open: send, drain: send })) as unknown as Bun.Socket<undefined>);
  }
  // When the last one has had its turns, all have been read as far as they go.
  for (let turn = 0; turn < 20; turn++) await Bun.sleep(1);
  expect(it.isTerminated).toBe(false);
  it.takes = 64 << 20;
  channel.drained();
  // The bytes that waited, and as many again from connections that went on afterwards.
  expect(it.taken).toBeLessThan(20 << 20);
  while (it.bytesOf.size < streams || [...it.bytesOf.values()].some(bytes => bytes < windowBytes)) {
    it.takes = 64 << 20;
    channel.drained();
    await Bun.sleep(1);
  }
  expect(it.isTerminated).toBe(false);
  for (const local of locals) local.terminate();
  channel.close();
}, 60_000);

test('if too much waits for local sides that do not read, the longest are given up and the others stay', async () => {
  const { it, socket } = socketOf(1 << 30);
  const farEnds = new FarEnds(new Backlog(128 << 10));
  const channel = new TlsChannel(socket, { farEnds });
  const files: number[] = [];
  channel.listen({ message: (_, file) => void (file !== undefined && files.push(file)), closed() {} });
  const streams = 12;
  for (let stream = 1; stream <= streams; stream++) {
    channel.received(tlsFrame(frameKinds.message, stream, '{}'));
    for (let piece = 0; piece < 4; piece++)
      channel.received(tlsFrame(frameKinds.data, stream, Buffer.alloc(windowBytes / 4)));
  }
  expect(it.isTerminated).toBe(false);
  // The kernel takes a part of each.
  expect(it.resets.length).toBeWithin(1, streams);
  expect(it.resets).toEqual(it.resets.map((_, index) => index + 1));
  expect(farEnds.take(files[0] ?? -1)?.wasReset()).toBe(true);
  expect(farEnds.take(files[11] ?? -1)?.wasReset()).toBe(false);
  let got = 0;
  const reading = await opened(files[11] ?? -1, { data: (_, bytes) => void (got += bytes.length) });
  while (got < windowBytes) await Bun.sleep(1);
  (reading as unknown as Bun.Socket).terminate();
  for (const file of files.slice(0, 11)) closeFile(file);
  channel.close();
});

test('small waiting pieces arrive unchanged', async () => {
  const { socket } = socketOf(1 << 30);
  const channel = new TlsChannel(socket, { farEnds: new FarEnds() });
  const files: number[] = [];
  channel.listen({ message: (_, file) => void (file !== undefined && files.push(file)), closed() {} });
  channel.received(tlsFrame(frameKinds.message, 1, '{}'));
  const content = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index & 255));
  for (const byte of content) channel.received(tlsFrame(frameKinds.data, 1, Buffer.of(byte)));
  const got: Buffer[] = [];
  const reading = await opened(files[0] ?? -1, { data: (_, bytes) => void got.push(Buffer.from(bytes)) });
  while (got.reduce((sum, { length }) => sum + length, 0) < content.length) await Bun.sleep(1);
  expect(Buffer.concat(got).equals(content)).toBe(true);
  (reading as unknown as Bun.Socket).terminate();
  channel.close();
});

/** A carried connection whose local side reads `reads` and never ends by itself. */
async function neverEnding({ reads }: { reads: boolean }) {
  const { it, socket } = socketOf(1 << 30);
  const channel = new TlsChannel(socket);
  const [own, given] = streamPair();
  channel.send('{}', given);
  const local = { got: 0, isClosed: false };
  const side = (await opened(own, {
    open: from => void (reads || from.pause()),
    data: (_, bytes) => void (local.got += bytes.length),
    // By default, the runtime closes at an end.
    end() {},
    close: () => void (local.isClosed = true),
  })) as unknown as Bun.Socket;
  return { it, channel, local, side };
}

test('a local side that never ends holds no connection whose other side is gone', async () => {
  const { it, channel, local } = await neverEnding({ reads: true });
  channel.received(tlsFrame(frameKinds.data, 1, Buffer.alloc(1_000)));
  channel.received(tlsFrame(frameKinds.end, 1));
  while (local.got < 1_000) await Bun.sleep(1);
  expect(local.isClosed).toBe(false);
  channel.received(tlsFrame(frameKinds.reset, 1));
  while (!local.isClosed) await Bun.sleep(1);
  expect(it.resets).toEqual([]);
  channel.close();
});

test('bytes that the other side sent before it left are read first', async () => {
  const { channel, local, side } = await neverEnding({ reads: false });
  for (let sent = 0; sent < windowBytes; sent += windowBytes / 4)
    channel.received(tlsFrame(frameKinds.data, 1, Buffer.alloc(windowBytes / 4)));
  channel.received(tlsFrame(frameKinds.end, 1));
  channel.received(tlsFrame(frameKinds.reset, 1));
  await Bun.sleep(20);
  side.resume();
  while (!local.isClosed) await Bun.sleep(1);
  expect(local.got).toBe(windowBytes);
  channel.close();
});
