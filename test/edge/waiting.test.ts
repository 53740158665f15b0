import { expect, test } from 'bun:test';
import { flag, frame, frameType, framesOf, headFrame, preface, setting } from '../attacks/support/http2-frames.ts';
import { startFixture } from './support/fixture.ts';
import { RawSocket } from './support/raw-socket.ts';

// Bytes that the edge has read and that nobody takes: on many connections they would be more than its memory.

const mebibyte = 1_048_576;
const many = 40;
const initialWindow = 4;

const ended = ({ end }: RawSocket) => end !== undefined;
const firstEnd = (clients: RawSocket[]) => Promise.race(clients.map(client => client.until(ended)));
const closeAll = (clients: RawSocket[]) => clients.forEach(client => client.close());

test('uploads that no service reads end where too much waits: those of the team with the most', async () => {
  await using fixture = startFixture({ limits: { waitingBytesMax: 2 * mebibyte } });
  let served = 0;
  const service = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    // It reads once: then the request is no longer on its way to the service.
    socket: { data: socket => (served++, socket.pause()) },
  });
  using _ = { [Symbol.dispose]: () => service.stop(true) };
  fixture.mapPort(80, service.port);
  fixture.sandbox('one', { teamId: 'many' });
  fixture.sandbox('two', { teamId: 'one' });
  const upload = async (sandboxId: string) => {
    const client = await RawSocket.connect(fixture.port);
    client.send(`POST / HTTP/1.1\r\nHost: 80-${sandboxId}.localhost\r\nContent-Length: ${100 * mebibyte}\r\n\r\n`);
    client.send(Buffer.alloc(8 * mebibyte));
    return client;
  };
  const other = await upload('two');
  while (served === 0) await Bun.sleep(5);
  const own = await Promise.all(Array.from({ length: many }, () => upload('one')));
  await firstEnd(own);
  expect([ended(other), own.every(ended)]).toEqual([false, false]);
  closeAll([other, ...own]);
});

test('clients without a key that read no answers end where too much waits', async () => {
  await using fixture = startFixture({ limits: { waitingBytesMax: 2 * mebibyte } });
  const clients = await Promise.all(Array.from({ length: many }, () => RawSocket.connect(fixture.port)));
  for (const client of clients) {
    client.pause();
    client.send('GET / HTTP/1.1\r\nHost: 80-nobody.localhost\r\n\r\n'.repeat(100_000));
  }
  while (fixture.edge.stats().clientConnections === many) await Bun.sleep(20);
  expect(fixture.edge.stats().clientConnections).toBeGreaterThan(0);
  closeAll(clients);
});

test('streams that wait for a client count, also where they have no request in a sandbox', async () => {
  await using fixture = startFixture({ limits: { waitingBytesMax: mebibyte } });
  const open = async () => {
    const client = await RawSocket.connect(fixture.port);
    const ask = (stream: number) =>
      headFrame(
        stream,
        Object.entries({ ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': '80-nobody.localhost' }),
        flag.endHeaders | flag.endStream,
      );
    client.send(Buffer.concat([preface, frame(frameType.settings, 0, 0, setting(initialWindow, 0))]));
    for (let n = 0; n < many; n++) client.send(ask(2 * n + 1));
    return client;
  };
  const first = await open();
  const heads = () => framesOf(Buffer.from(first.received, 'latin1')).filter(({ type }) => type === frameType.headers);
  await first.until(() => heads().length === many);
  const second = await open();
  await first.until(ended);
  expect(ended(second)).toBe(false);
  closeAll([first, second]);
});
