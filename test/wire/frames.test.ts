import { heapStats } from 'bun:jsc';
import { expect, test } from 'bun:test';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { silentLog } from '../../src/base/telemetry/log.ts';
import { method } from '../../src/protocol/wire/method.ts';
import { proxyOf } from '../../src/wire/call.ts';
import { checkedMethods } from '../../src/wire/checked.ts';
import { connectionTo } from '../../src/wire/connect.ts';
import { FrameReader, frameBytesMax, frameOf } from '../../src/wire/frame.ts';
import { frameKinds, tlsFrame, TlsFrameReader } from '../../src/wire/tls/tls-frame.ts';
import { listenOn } from '../../src/wire/listen.ts';

const table = { double: method([Type.Number()], Type.Number()) };
const methods = checkedMethods(table);
const uid = process.getuid?.() ?? 0;

function startPart() {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-wire-'));
  const path = join(folder, 'part.sock');
  const called: number[] = [];
  const implementation = { double: async (value: number) => (called.push(value), value * 2) };
  const listening = listenOn({ path, caller: 'api', uid, log: silentLog }, { methods, implementation });
  const connection = connectionTo(path, 'part', 500);
  const remote = proxyOf<typeof implementation>(table, methods, connection);
  return {
    path,
    called,
    remote,
    [Symbol.dispose]() {
      connection.close();
      listening.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Sends bytes and answers whether the other side hung up. */
async function hangsUp(path: string, bytes: Uint8Array): Promise<boolean> {
  const closed = Promise.withResolvers<boolean>();
  const socket = await Bun.connect({ unix: path, socket: { data() {}, close: () => closed.resolve(true) } });
  socket.write(bytes);
  socket.flush();
  const timer = setTimeout(() => closed.resolve(false), 20_000);
  const answer = await closed.promise;
  clearTimeout(timer);
  socket.terminate();
  return answer;
}

const head = (length: number, flag: number) => {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32LE(length >>> 0);
  bytes.writeUInt8(flag, 4);
  return bytes;
};
const call = (args: string) => `{"id":1,"call":"double","args":${args}}`;

const garbage: [name: string, bytes: Uint8Array][] = [
  ['a message of more than the most', head(frameBytesMax + 1, 0)],
  ['a message of four gigabytes', head(0xffff_ffff, 0)],
  ['an unknown flag', head(0, 2)],
  ['an empty message', head(0, 0)],
  ['a file that is announced and does not come', frameOf(call('[1]'), true)],
  ['text that is no JSON', frameOf('hello', false)],
  ['JSON that is no message', frameOf('[1,2,3]', false)],
  ['null', frameOf('null', false)],
  ['a call without a number', frameOf('{"call":"double","args":[1]}', false)],
  ['a call of number 0', frameOf('{"id":0,"call":"double","args":[1]}', false)],
  ['a call of a fraction', frameOf('{"id":1.5,"call":"double","args":[1]}', false)],
  ['a call whose name is a list', frameOf('{"id":1,"call":["double"],"args":[1]}', false)],
  ['a call with a very long name', frameOf(`{"id":1,"call":"${'x'.repeat(200)}","args":[]}`, false)],
  ['arguments that are no list', frameOf(call('{"0":1}'), false)],
  ['very many arguments', frameOf(call(JSON.stringify(new Array(50).fill(1))), false)],
  ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
  ['zero bytes', Buffer.alloc(64)],
  ['broken UTF-8', Buffer.concat([head(4, 0), Buffer.from([0xff, 0xfe, 0x80, 0x81])])],
];

for (const [name, bytes] of garbage) {
  test(`${name}: its connection is closed, nothing is called, others go on`, async () => {
    using part = startPart();
    expect(await part.remote.double(4)).toBe(8);
    expect(await hangsUp(part.path, bytes)).toBe(true);
    expect(part.called).toEqual([4]);
    expect(await part.remote.double(5)).toBe(10);
  });
}

test('random bytes, and messages that are changed in one place, end no process and leave no file open', async () => {
  using part = startPart();
  await part.remote.double(1);
  const before = readdirSync('/proc/self/fd').length;
  const random = (max: number) => Math.floor(Math.random() * max);
  const sound = Buffer.concat([frameOf(call('[7]'), false), frameOf('{"id":1,"cancel":true}', false)]);
  for (let round = 0; round < 200; round++) {
    const bytes =
      round % 2 === 0 ? Buffer.from(Array.from({ length: 1 + random(400) }, () => random(256))) : Buffer.from(sound);
    if (round % 2 === 1) bytes[random(bytes.length)] = random(256);
    const socket = await Bun.connect({ unix: part.path, socket: { data() {} } });
    socket.write(bytes);
    socket.end();
  }
  expect(await part.remote.double(21)).toBe(42);
  for (
    const deadline = performance.now() + 20_000;
    readdirSync('/proc/self/fd').length > before && performance.now() < deadline;
  )
    await Bun.sleep(10);
  expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before);
});

test('messages are found however their bytes are cut', () => {
  const texts = ['', 'a', 'ö'.repeat(1000), '{"x":1}'];
  const bytes = Buffer.concat(texts.map((text, index) => frameOf(text, index % 2 === 1)));
  for (const size of [1, 2, 3, 5, 7, 64, bytes.length]) {
    const reader = new FrameReader();
    const found: [string, boolean][] = [];
    for (let at = 0; at < bytes.length; at += size)
      expect(reader.push(bytes.subarray(at, at + size), (text, withFile) => found.push([text, withFile]))).toBe(true);
    expect(found).toEqual(texts.map((text, index) => [text, index % 2 === 1]));
  }
});

test('a message that comes byte by byte is not held byte by byte', () => {
  const bytes = frameOf('x'.repeat(100_000), false);
  const buffers = () => {
    Bun.gc(true);
    return heapStats().objectTypeCounts['Uint8Array'] ?? 0;
  };
  for (const reader of [new FrameReader(), new TlsFrameReader()]) {
    const ofTls = reader instanceof TlsFrameReader;
    const all = ofTls ? tlsFrame(frameKinds.message, 0, 'x'.repeat(100_000)) : bytes;
    const before = buffers();
    let found = 0;
    const push = (piece: Uint8Array) =>
      reader.push(
        piece,
        (read: string | { body: Buffer }) => (found = (typeof read === 'string' ? read : read.body).length),
      );
    for (const byte of all.subarray(0, -1)) push(Uint8Array.of(byte));
    expect(buffers() - before).toBeLessThan(1_000);
    push(all.subarray(-1));
    expect(found).toBe(100_000);
  }
});

test('somebody else’s user is hung up on', async () => {
  using part = startPart();
  // It is the owner's alone. Here everybody may connect, so that the kernel's report of the user decides.
  expect(statSync(part.path).mode & 0o777).toBe(0o600);
  chmodSync(join(part.path, '..'), 0o755);
  chmodSync(part.path, 0o666);
  // Perl is part of every Debian, where other users may run it too.
  const connects =
    'my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "can\'t connect: $!"; print 0 + ($s->sysread(my $b, 10) // 0)';
  const bytesFor = async (user: string[]) => {
    const child = Bun.spawn([...user, 'perl', '-MIO::Socket::UNIX', '-e', connects, part.path], {
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return out.trim() || errors;
  };
  expect(await bytesFor([])).toBe('4');
  expect(await bytesFor(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'])).toBe('0');
});
