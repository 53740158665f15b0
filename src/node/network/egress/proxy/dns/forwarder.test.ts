import { afterAll, beforeEach, expect, test } from 'bun:test';
import { AtollError } from '../../../../../base/error.ts';
import type { EgressPolicy } from '../../../../../protocol/network/network.ts';
import { slotOf } from '../../../../layout.ts';
import type { PlatformInside } from '../../proxies/messages.ts';
import { createProxiedSandboxes, type ProxiedSandbox } from '../sandboxes.ts';
import { createDescriptors } from '../shares/descriptors.ts';
import { createTurns } from '../shares/turns.ts';
import type { Account } from '../target.ts';
import { startForwarder } from './forwarder.ts';
import { addressAnswer, emptyAnswer, type Query, readAnswer, recordType, responseCode, writeQuery } from './message.ts';

const platform: PlatformInside = {
  ...{ domain: 'box.test', insideAddress: '198.19.1.1', httpPorts: [80], tlsPorts: [] },
  edge: { address: '127.0.0.1', port: 1 },
};
/** The address of the sandbox, and one that belongs to nobody. */
const [own, strange] = ['127.0.0.5', '127.0.0.6'];
const closers: (() => void)[] = [];
afterAll(() => closers.forEach(close => close()));

const asked: { query: Query; account: Account }[] = [];
const state = {
  policy: { internetAccess: true } as EgressPolicy,
  answer: async (query: Query): Promise<Buffer> => addressAnswer(query, ['203.0.113.7'], 9),
};
const denied: unknown[] = [];
const descriptors = createDescriptors(1000);
let sandbox: ProxiedSandbox;

/** A sandbox that has asked for nothing yet. */
function fresh(policy: EgressPolicy = { internetAccess: true }): void {
  const all = createProxiedSandboxes(
    0,
    createTurns(() => {}),
    () => {},
  );
  all.set(1, policy);
  sandbox = all.at(slotOf(0, 1).address)!;
  sandbox.deny = denial => void denied.push(denial);
}
beforeEach(() => {
  fresh();
  asked.length = 0;
  denied.length = 0;
  state.answer = async query => addressAnswer(query, ['203.0.113.7'], 9);
});

const port = await (async () => {
  // A free TCP port: few programs use UDP ports, so the UDP port of that number is likely free, too.
  const probe = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  const { port: free } = probe;
  probe.stop(true);
  await startForwarder({
    ...{ hostname: '127.0.0.1', port: free, descriptors, platform, resolvers: [] },
    sandboxes: { at: address => (address === own ? sandbox : undefined), set() {}, remove() {} },
    resolver: {
      resolve: async () => [],
      ask(query, account) {
        asked.push({ query, account });
        return state.answer(query);
      },
    },
  });
  return free;
})();

/** A client that asks by datagrams, and gets the answers one by one. */
async function asker(hostname = own) {
  const answers: Buffer[] = [];
  let heard = () => {};
  const socket = await Bun.udpSocket({
    hostname,
    socket: {
      data(_, bytes) {
        answers.push(Buffer.from(bytes));
        heard();
      },
    },
  });
  closers.push(() => socket.close());
  const next = async (): Promise<Buffer> => {
    while (answers.length === 0) await new Promise<void>(resolve => (heard = resolve));
    return answers.shift()!;
  };
  const sends = (bytes: Uint8Array) => void socket.send(bytes, port, '127.0.0.1');
  return { sends, next, answers };
}
const plain = { id: 7, name: 'a.test', type: recordType.A as number, extended: false, wantsSignatures: false };
const question = (more: Partial<typeof plain> = {}) => writeQuery({ ...plain, ...more });
const read = (answer: Buffer) => ({ id: answer.readUInt16BE(0), ...readAnswer(answer) });

/** The answer to one question that is sent by datagram. */
async function answerTo(more: Partial<typeof plain> = {}) {
  const { sends, next } = await asker();
  sends(question(more));
  return read(await next());
}

test('a question of a sandbox is passed on and answered under its number, one of nobody’s is not', async () => {
  const [stranger, { sends, next }] = [await asker(strange), await asker()];
  stranger.sends(question({ name: 'strange.test' }));
  sends(Buffer.from('nonsense'));
  sends(question());
  expect(read(await next())).toMatchObject({ id: 7, code: responseCode.ok, addresses: ['203.0.113.7'] });
  expect([asked.map(({ query }) => query.name), stranger.answers, sandbox.lookups]).toEqual([['a.test'], [], 0]);
  // The sandbox's account pays for it.
  const release = asked[0]?.account.take();
  expect([sandbox.held, asked[0]?.account.share]).toEqual([1, sandbox.share]);
  release?.();
});

test('a name that the policy does not allow is refused, and that is reported', async () => {
  fresh({ internetAccess: false, allowOut: ['b.test'] });
  expect(await answerTo()).toMatchObject({ code: responseCode.refused, addresses: [] });
  expect([denied, asked]).toEqual([[{ host: 'a.test', port: 53, rule: 'allow_internet_access false' }], []]);
  expect(await answerTo({ name: 'b.test' })).toMatchObject({ code: responseCode.ok });
});

test('names of sandboxes lead to the platform, by IPv4 only', async () => {
  expect(await answerTo({ name: '80-abc.box.test' })).toMatchObject({
    ...{ code: responseCode.ok, addresses: ['198.19.1.1'], ttlSeconds: 60 },
  });
  expect(await answerTo({ name: '80-abc.box.test', type: 28 })).toMatchObject({ code: responseCode.ok, addresses: [] });
  expect(asked).toEqual([]);
  await answerTo({ name: 'api.box.test' });
  expect(asked).toHaveLength(1);
});

test('records that would hide a name are left out if names decide', async () => {
  for (const type of [recordType.HTTPS, recordType.SVCB]) {
    fresh({ internetAccess: true, allowOut: ['a.test'] });
    expect(await answerTo({ type })).toMatchObject({ code: responseCode.ok, addresses: [] });
    expect(asked).toEqual([]);
    fresh();
    await answerTo({ type });
    expect(asked).toHaveLength(1);
    asked.length = 0;
  }
});

test('a question that nobody could answer is said to have failed', async () => {
  state.answer = () => Promise.reject(new AtollError('unavailable', 'no server answers'));
  expect(await answerTo()).toMatchObject({ code: responseCode.failure, addresses: [] });
  expect(sandbox.lookups).toBe(0);
});

test('the open questions of one sandbox are limited, and so are those within a time', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  state.answer = async query => (await promise, addressAnswer(query, [], 9));
  const { sends, next, answers } = await asker();
  for (let id = 1; id <= 66; id++) sends(question({ id }));
  while (asked.length < 64) await Bun.sleep(1);
  // Its answer comes after the answers to all questions read before.
  sends(question({ id: 99, name: '80-abc.box.test' }));
  expect([read(await next()).id, asked.length, sandbox.lookups]).toEqual([99, 64, 64]);
  resolve();
  for (let count = 0; count < 64; count++) await next();
  expect([answers, sandbox.lookups]).toEqual([[], 0]);
  while (sandbox.questions.take());
  sandbox.questions.take = () => false;
  sends(question({ id: 1 }));
  sends(question({ id: 2, name: '80-abc.box.test' }));
  expect(read(await next()).id).toBe(2);
});

test('a question that is too long is ignored, and an answer that is too long is cut', async () => {
  const { sends, next } = await asker();
  sends(Buffer.concat([question({ id: 1 }), Buffer.alloc(4097 - question().length)]));
  sends(Buffer.concat([question({ id: 2 }), Buffer.alloc(4096 - question().length)]));
  expect(read(await next()).id).toBe(2);
  state.answer = async query => addressAnswer(query, Array(40).fill('203.0.113.7'), 9);
  sends(question({ id: 3 }));
  expect(read(await next())).toMatchObject({ id: 3, truncated: true });
  sends(question({ id: 4, extended: true }));
  expect(read(await next())).toMatchObject({ id: 4, truncated: false });
  state.answer = async query => addressAnswer(query, Array(100).fill('203.0.113.7'), 9);
  sends(question({ id: 5, extended: true }));
  expect(read(await next())).toMatchObject({ id: 5, truncated: true });
});

/** A client that asks over a connection, and collects the messages that arrive. */
async function connected(localAddress = own) {
  const messages: Buffer[] = [];
  const it = { isClosed: false, isEnded: false };
  let have = Buffer.alloc(0);
  const socket = await Bun.connect({
    ...{ hostname: '127.0.0.1', port, localAddress, allowHalfOpen: true },
    socket: {
      data(_: Bun.Socket, bytes: Buffer) {
        have = Buffer.concat([have, bytes]);
        while (have.length >= 2 && have.length >= 2 + have.readUInt16BE(0)) {
          messages.push(have.subarray(2, 2 + have.readUInt16BE(0)));
          have = have.subarray(2 + have.readUInt16BE(0));
        }
      },
      end: () => void (it.isEnded = true),
      close: () => void (it.isClosed = true),
      error() {},
    },
  } as Bun.TCPSocketConnectOptions<undefined>);
  closers.push(() => socket.terminate());
  const until = async (holds: () => boolean) => {
    while (!holds()) await Bun.sleep(1);
  };
  return { socket, messages, it, until };
}
const framed = (bytes: Buffer) => Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]);

test('questions on a connection are answered one after the other, however they come', async () => {
  let open = 0;
  state.answer = async query => {
    expect(++open).toBe(1);
    await Bun.sleep(1);
    open--;
    return addressAnswer(query, Array(100).fill('203.0.113.7'), 9);
  };
  const { socket, messages, it, until } = await connected();
  const bytes = Buffer.concat([1, 2, 3].map(id => framed(question({ id }))));
  for (const part of [bytes.subarray(0, 1), bytes.subarray(1, 9), bytes.subarray(9)]) {
    socket.write(part);
    await Bun.sleep(2);
  }
  await until(() => messages.length === 3);
  expect(messages.map(message => read(message))).toMatchObject([1, 2, 3].map(id => ({ id, truncated: false })));
  expect([sandbox.dnsConnections, sandbox.held]).toEqual([1, 1]);
  // A client that closes its half after a question still gets the answer.
  socket.write(framed(question({ id: 4 })));
  socket.shutdown();
  await until(() => it.isEnded || it.isClosed);
  expect(messages.length).toBe(4);
  socket.end();
  await until(() => sandbox.dnsConnections === 0 && sandbox.held === 0);
});

test('a client that ends its half while nothing is open is disconnected', async () => {
  const { socket, it, until } = await connected();
  socket.shutdown();
  await until(() => it.isEnded || it.isClosed);
});

test('a connection of nobody’s, one too many, and one of nonsense are closed', async () => {
  const stranger = await connected(strange);
  await stranger.until(() => stranger.it.isClosed);
  const many = await Promise.all(Array.from({ length: 16 }, () => connected()));
  await many[0]?.until(() => sandbox.dnsConnections === 16);
  const late = await connected();
  await late.until(() => late.it.isClosed);
  expect([sandbox.dnsConnections, sandbox.held]).toEqual([16, 16]);
  const [nonsense, long, ahead, ...others] = many;
  nonsense?.socket.write(framed(Buffer.from('nonsense')));
  long?.socket.write(Buffer.of(4097 >> 8, 4097 & 255));
  await nonsense?.until(() => nonsense.it.isClosed);
  await long?.until(() => long.it.isClosed);
  // The bytes that wait behind a question have a bound.
  const { promise, resolve } = Promise.withResolvers<void>();
  state.answer = async query => (await promise, addressAnswer(query, [], 9));
  ahead?.socket.write(framed(question()));
  await ahead?.until(() => asked.length === 1);
  ahead?.socket.write(Buffer.alloc(2 * 4096 + 1));
  await ahead?.until(() => ahead.it.isClosed);
  resolve();
  for (const { socket } of others) socket.end();
  while (sandbox.dnsConnections > 0) await Bun.sleep(1);
  expect(sandbox.held).toBe(0);
});

test('a sandbox that has no share of the descriptors left has no connection', async () => {
  const held = Array.from({ length: 1000 }, () => descriptors.take(sandbox)).filter(release => release !== undefined);
  const { it, until } = await connected();
  await until(() => it.isClosed);
  expect([sandbox.dnsConnections, asked]).toEqual([0, []]);
  for (const release of held) release();
});

test('a connection whose question is dropped is closed', async () => {
  sandbox.questions.take = () => false;
  const { socket, it, until } = await connected();
  socket.write(framed(question()));
  await until(() => it.isClosed);
});

test('a client that does not read its answers has no more questions asked, and gets all once it reads', async () => {
  state.answer = async query => Buffer.concat([emptyAnswer(query, responseCode.ok), Buffer.alloc(60_000)]);
  const { socket, messages, until } = await connected();
  socket.pause();
  const count = 240;
  socket.write(Buffer.concat(Array.from({ length: count }, (_, id) => framed(question({ id })))));
  let before = -1;
  while (asked.length === 0 || asked.length > before) {
    before = asked.length;
    await Bun.sleep(30);
  }
  expect(asked.length).toBeLessThan(count);
  sandbox.questions.take = () => true;
  socket.resume();
  await until(() => messages.length === count);
  expect(messages.map(message => message.readUInt16BE(0))).toEqual(Array.from({ length: count }, (_, id) => id));
});
