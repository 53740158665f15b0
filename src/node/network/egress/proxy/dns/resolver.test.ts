import { afterEach, expect, setSystemTime, test } from 'bun:test';
import type { Account } from '../target.ts';
import { addressAnswer, emptyAnswer, parseQuery, type Query, responseCode } from './message.ts';
import { createResolver } from './resolver.ts';

const question = { id: 7, name: 'a.test', type: 1, udpBytesMax: 512, extended: false, wantsSignatures: false };

/** Counts the descriptors that are taken. */
function countingAccount() {
  const taken = { count: 0 };
  const take = () => {
    taken.count++;
    return () => void taken.count--;
  };
  return { taken, account: { take } as unknown as Account };
}

/** A server that answers by UDP at this port, either that there is nothing or that the answer is too long for UDP. */
async function serveDatagrams(port: number, answer: { truncated: boolean }) {
  return await Bun.udpSocket({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(socket, bytes, fromPort, from) {
        const query = parseQuery(bytes);
        if (!query) return;
        const empty = emptyAnswer(query, responseCode.ok);
        if (answer.truncated) empty.writeUInt16BE(empty.readUInt16BE(2) | 0x0200, 2);
        socket.send(empty, fromPort, from);
      },
    },
  });
}

test('a server whose TCP fails is passed over for the next one', async () => {
  const [first, second] = [await serveDatagrams(0, { truncated: true }), await serveDatagrams(0, { truncated: false })];
  try {
    const { account, taken } = countingAccount();
    const resolver = createResolver([first, second].map(({ port }) => ({ address: '127.0.0.1', port })));
    expect((await resolver.ask(question, account)).length).toBeGreaterThan(0);
    await Bun.sleep(0);
    expect(taken.count).toBe(0);
  } finally {
    first.close();
    second.close();
  }
});

/** Listens with a full queue: the kernel answers no further connection. Takes one after a line on stdin. */
const deaf = `
import os, socket, sys
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(0)
own = [socket.create_connection(s.getsockname())]
os.write(1, b'%d\\n' % s.getsockname()[1])
sys.stdin.readline()
s.accept()
taken = s.accept()[0]
taken.settimeout(60)
try:
  while taken.recv(100): pass
except ConnectionResetError: pass
os.write(1, b'closed\\n')
`;

test('a connection that does not come up in time is passed over, and closed where it comes up later', async () => {
  const server = Bun.spawn(['python3', '-c', deaf], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' });
  const lines = server.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const port = Number((await lines.read()).value);
  const [first, second] = [
    await serveDatagrams(port, { truncated: true }),
    await serveDatagrams(0, { truncated: false }),
  ];
  try {
    const { account, taken } = countingAccount();
    const resolver = createResolver([first, second].map(socket => ({ address: '127.0.0.1', port: socket.port })));
    const startedAt = performance.now();
    await resolver.ask(question, account);
    expect(performance.now() - startedAt).toBeWithin(2_000, 6_000);
    expect(taken.count).toBe(1);
    void server.stdin.write('go on\n');
    await server.stdin.flush();
    expect((await lines.read()).value).toBe('closed\n');
    while (taken.count > 0) await Bun.sleep(10);
  } finally {
    first.close();
    second.close();
    server.kill();
    await server.exited;
  }
}, 60_000);

const undo: (() => void)[] = [];
afterEach(() => {
  setSystemTime();
  for (const step of undo.splice(0)) step();
});

type Answers = (query: Query, count: number) => Buffer | Buffer[];

/** A server for datagrams and connections at one port, which counts the questions of each kind. */
async function server(answers: Answers, byConnection: (query: Query) => Buffer | undefined = () => undefined) {
  const state = { datagrams: 0, connections: 0 };
  // The TCP port comes first: few programs use UDP ports, so the UDP port of that number is likely free, too.
  const listener = Bun.listen({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: {
      async data(from, bytes) {
        state.connections++;
        const query = parseQuery(bytes.subarray(2));
        const answer = query && byConnection(query);
        if (!answer) return void from.end();
        const framed = Buffer.concat([Buffer.of(answer.length >> 8, answer.length & 255), answer]);
        for (const part of [framed.subarray(0, 1), framed.subarray(1, 20), framed.subarray(20)]) {
          from.write(part);
          await Bun.sleep(1);
        }
      },
    },
  });
  const { port } = listener;
  const socket = await Bun.udpSocket({
    ...{ hostname: '127.0.0.1', port },
    socket: {
      data(from, bytes, fromPort, address) {
        const query = parseQuery(bytes);
        if (!query) return;
        const given = answers(query, ++state.datagrams);
        for (const answer of Array.isArray(given) ? given : [given]) from.send(answer, fromPort, address);
      },
    },
  });
  undo.push(() => (socket.close(), listener.stop(true)));
  return { state, at: { address: '127.0.0.1', port } };
}
const is =
  (address: string, ttlSeconds = 60) =>
  (query: Query) =>
    addressAnswer(query, [address], ttlSeconds);
const says = (code: number) => (query: Query) => emptyAnswer(query, code);
const truncated = (query: Query) => {
  const answer = emptyAnswer(query, responseCode.ok);
  answer.writeUInt16BE(answer.readUInt16BE(2) | 0x0200, 2);
  return answer;
};

test('addresses are kept for as long as their owner says, and not for longer than five minutes', async () => {
  for (const [ttl, kept] of [
    [30, 30],
    [1000, 300],
  ] as const) {
    const { state, at } = await server(is('203.0.113.7', ttl));
    const { account, taken } = countingAccount();
    const resolver = createResolver([at]);
    const now = Date.now();
    setSystemTime(now);
    const both = [resolver.resolve('a.test', account), resolver.resolve('a.test', account)];
    expect(await Promise.all(both)).toEqual([['203.0.113.7'], ['203.0.113.7']]);
    setSystemTime(now + kept * 1000 - 1);
    expect([await resolver.resolve('a.test', account), state.datagrams]).toEqual([['203.0.113.7'], 1]);
    setSystemTime(now + kept * 1000 + 1000);
    await resolver.resolve('a.test', account);
    await resolver.resolve('b.test', account);
    expect([state.datagrams, taken.count]).toEqual([3, 0]);
  }
});

test('it is kept for a moment that a name has no address, but not that no server could say', async () => {
  const none = await server(says(responseCode.noSuchName));
  const { account, taken } = countingAccount();
  const resolver = createResolver([none.at]);
  const now = Date.now();
  setSystemTime(now);
  await expect(resolver.resolve('a.test', account)).rejects.toMatchObject({ code: 'not_found' });
  setSystemTime(now + 4_999);
  await expect(resolver.resolve('a.test', account)).rejects.toMatchObject({ code: 'not_found' });
  expect(none.state.datagrams).toBe(1);
  setSystemTime(now + 6_000);
  await expect(resolver.resolve('a.test', account)).rejects.toMatchObject({ code: 'not_found' });
  expect(none.state.datagrams).toBe(2);
  const failing = await server(says(responseCode.failure));
  const other = createResolver([failing.at]);
  for (const times of [2, 4]) {
    await expect(other.resolve('a.test', account)).rejects.toMatchObject({ code: 'unavailable' });
    // The resolver goes through the list of servers twice.
    expect(failing.state.datagrams).toBe(times);
  }
  expect(taken.count).toBe(0);
});

test('a server that fails or refuses is passed over for the next one', async () => {
  const { account } = countingAccount();
  for (const code of [responseCode.failure, responseCode.refused]) {
    const [first, second] = [await server(says(code)), await server(is('203.0.113.8'))];
    const resolver = createResolver([first.at, second.at]);
    expect(await resolver.resolve('a.test', account)).toEqual(['203.0.113.8']);
    expect([first.state.datagrams, second.state.datagrams]).toEqual([1, 1]);
  }
});

test('only an answer to the question itself is taken', async () => {
  const { at } = await server(query => [
    is('6.6.6.6')({ ...query, id: query.id ^ 1 }),
    is('6.6.6.7')({ ...query, name: 'b.test' }),
    is('203.0.113.9')(query),
  ]);
  expect(await createResolver([at]).resolve('a.test', countingAccount().account)).toEqual(['203.0.113.9']);
});

test('an answer too long for a datagram is fetched over a connection, and read in pieces', async () => {
  const long = (query: Query) => addressAnswer(query, Array(200).fill('203.0.113.7'), 60);
  const { state, at } = await server(truncated, long);
  const { account, taken } = countingAccount();
  expect(await createResolver([at]).resolve('a.test', account)).toHaveLength(200);
  expect([state.datagrams, state.connections]).toEqual([1, 1]);
  while (taken.count > 0) await Bun.sleep(1);
});

test('a connection that brings another answer, or none, is passed over', async () => {
  const wrong = (query: Query) => is('6.6.6.6')({ ...query, id: query.id ^ 1 });
  for (const byConnection of [wrong, () => undefined]) {
    const [first, second] = [await server(truncated, byConnection), await server(is('203.0.113.8'))];
    const { account, taken } = countingAccount();
    expect(await createResolver([first.at, second.at]).resolve('a.test', account)).toEqual(['203.0.113.8']);
    while (taken.count > 0) await Bun.sleep(1);
  }
});

test('a sandbox without a descriptor left looks nothing up', async () => {
  const { state, at } = await server(is('203.0.113.7'));
  const none = { take: () => undefined } as unknown as Account;
  const resolver = createResolver([at]);
  await expect(resolver.resolve('a.test', none)).rejects.toMatchObject({ code: 'forbidden' });
  await expect(resolver.ask(question, none)).rejects.toMatchObject({ code: 'forbidden' });
  expect(state.datagrams).toBe(0);
  // A known name takes no descriptor.
  await resolver.resolve('a.test', countingAccount().account);
  expect(await resolver.resolve('a.test', none)).toEqual(['203.0.113.7']);
});
