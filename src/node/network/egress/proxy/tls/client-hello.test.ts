import { expect, test } from 'bun:test';
import { ClientHelloReader, clientHelloBytesMax, parseClientHello } from './client-hello.ts';

const u16 = (value: number) => Buffer.of(value >> 8, value & 255);
const extension = (type: number, data: Buffer) => Buffer.concat([u16(type), u16(data.length), data]);
const serverName = (name: string) => {
  const entry = Buffer.concat([Buffer.of(0), u16(name.length), Buffer.from(name, 'latin1')]);
  return extension(0, Buffer.concat([u16(entry.length), entry]));
};
const message = (...extensions: Buffer[]) => {
  const all = Buffer.concat(extensions);
  const body = Buffer.concat([
    u16(0x303),
    Buffer.alloc(32),
    Buffer.of(0),
    u16(2),
    u16(0x1301),
    Buffer.of(1, 0),
    u16(all.length),
    all,
  ]);
  return Buffer.concat([Buffer.of(1, 0), u16(body.length), body]);
};
const record = (data: Buffer) => Buffer.concat([Buffer.of(22, 3, 1), u16(data.length), data]);

test('the server name is read, wherever the records part the message', () => {
  const whole = message(
    extension(43, Buffer.of(2, 3, 4)),
    serverName('Allowed.test'),
    extension(21, Buffer.alloc(500)),
  );
  expect(parseClientHello(record(whole))).toEqual({ serverName: 'allowed.test', encrypted: false });
  for (let at = 1; at < whole.length; at++) {
    expect(parseClientHello(Buffer.concat([record(whole.subarray(0, at)), record(whole.subarray(at))]))).toEqual({
      serverName: 'allowed.test',
      encrypted: false,
    });
  }
});

test('every cut of a hello is incomplete, none is taken for whole', () => {
  const bytes = record(message(serverName('allowed.test')));
  for (let length = 0; length < bytes.length; length++)
    expect(parseClientHello(bytes.subarray(0, length))).toBe('incomplete');
});

test('a missing name, or one that is not a host name, counts as none', () => {
  expect(parseClientHello(record(message()))).toEqual({ serverName: undefined, encrypted: false });
  for (const name of ['203.0.113.11', 'a b.test', 'x\0.allowed.test', 'a..b'])
    expect(parseClientHello(record(message(serverName(name))))).toMatchObject({ serverName: undefined });
});

test('an encrypted hello is seen', () => {
  expect(parseClientHello(record(message(serverName('a.test'), extension(0xfe0d, Buffer.alloc(100)))))).toMatchObject({
    encrypted: true,
  });
});

test('a hello that could be read in two ways is invalid', () => {
  const good = message(serverName('a.test'));
  const twoNames = (() => {
    const entry = (name: string) => Buffer.concat([Buffer.of(0), u16(name.length), Buffer.from(name)]);
    const entries = Buffer.concat([entry('a.test'), entry('b.test')]);
    return message(extension(0, Buffer.concat([u16(entries.length), entries])));
  })();
  const bad = [
    record(message(serverName('a.test'), serverName('b.test'))), // two extensions
    record(twoNames),
    record(Buffer.concat([good, good])), // two messages
    record(Buffer.concat([good, Buffer.of(0)])),
    Buffer.concat([record(Buffer.alloc(0)), record(good)]), // an empty record
    Buffer.concat([Buffer.of(20, 3, 3, 0, 1, 1), record(good)]), // another kind of record
    Buffer.concat([record(good.subarray(0, 40)), Buffer.of(21, 3, 3, 0, 2, 1, 0), record(good.subarray(40))]),
    record(Buffer.concat([Buffer.of(2), good.subarray(1)])), // another message
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.concat([Buffer.of(22, 3, 1, 0xff, 0xff), Buffer.alloc(0xffff)]), // longer than a record may be
  ];
  for (const bytes of bad) expect(parseClientHello(bytes)).toBe('invalid');
});

test('a hello that is never complete comes to an end', () => {
  const endless = Buffer.concat(
    Array.from({ length: 3 }, (_, index) =>
      record(Buffer.concat([index === 0 ? Buffer.of(1, 0, 0x7f, 0) : Buffer.alloc(0), Buffer.alloc(15_000)])),
    ),
  );
  expect(endless.length).toBeGreaterThan(clientHelloBytesMax);
  expect(parseClientHello(endless.subarray(0, 30_000))).toBe('incomplete');
  expect(parseClientHello(endless)).toBe('invalid');
});

test('random octets never throw', () => {
  const good = record(message(serverName('allowed.test'), extension(0xfe0d, Buffer.alloc(20))));
  for (let seed = 1; seed < 5000; seed++) {
    const bytes = Buffer.from(good);
    for (let i = 0; i < 3; i++) bytes[((seed * (i + 7) * 2654435761) % bytes.length) >>> 0] = (seed * (i + 3)) & 255;
    expect(['object', 'string']).toContain(typeof parseClientHello(bytes));
  }
});

test('a hello in the smallest of parts and records is read once', () => {
  const whole = message(serverName('allowed.test'), extension(21, Buffer.alloc(5_000)));
  const records = Buffer.concat([...whole].map(byte => record(Buffer.of(byte))));
  const reader = new ClientHelloReader();
  const answers = [...records].map(byte => reader.push(Buffer.of(byte)));
  expect(answers.pop()).toEqual({ serverName: 'allowed.test', encrypted: false });
  expect(new Set(answers)).toEqual(new Set(['incomplete']));
});
