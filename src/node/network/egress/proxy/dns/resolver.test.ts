import { expect, test } from 'bun:test';
import type { Account } from '../target.ts';
import { emptyAnswer, parseQuery, responseCode } from './message.ts';
import { createResolver } from './resolver.ts';

const question = { id: 7, name: 'a.test', type: 1, udpBytesMax: 512, extended: false, wantsSignatures: false };

/** How many descriptors are taken. */
function countingAccount() {
  const taken = { count: 0 };
  const take = () => {
    taken.count++;
    return () => void taken.count--;
  };
  return { taken, account: { take } as unknown as Account };
}

/** A server that answers by UDP at this port: that there is nothing, or that the answer is too long for UDP. */
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

/** Listens with a queue that is full: the kernel answers no further connection. Takes one after a line on stdin. */
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
