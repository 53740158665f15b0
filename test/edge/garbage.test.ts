import { expect, test } from 'bun:test';
import { startFixture, to } from './support/fixture.ts';
import { RawSocket } from './support/raw-socket.ts';

const rounds = 400;

/** Fragments of HTTP and of other things; sequences of them get far into a parser before they go wrong. */
const pieces = [
  'GET / HTTP/1.1\r\n',
  'POST /x HTTP/1.1\r\n',
  'HTTP/1.1 200 OK\r\n',
  'HTTP/1.1 101 Switching Protocols\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.0 200 OK\r\n',
  'HTTP/1.1 204 No Content\r\n',
  'Host: 80-one.x\r\n',
  'Host: x\r\n',
  'Content-Length: 5\r\n',
  'Content-Length: 99999999\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Connection: close\r\n',
  'Connection: Upgrade\r\n',
  'Upgrade: websocket\r\n',
  'Expect: 100-continue\r\n',
  '\r\n',
  '\r\n\r\n',
  '\n',
  '\r',
  '0\r\n\r\n',
  '5\r\nhello\r\n',
  'ffff\r\n',
  'hello',
  ':',
  ' ',
  '\0',
  '\xff',
  'x'.repeat(5000),
];

test('whatever clients and services send, nothing breaks and nothing stays', async () => {
  let state = 12_345;
  const random = (max: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * max);
  };
  const babble = () => Array.from({ length: 1 + random(12) }, () => pieces[random(pieces.length)]).join('');
  await using fixture = startFixture({ limits: { dialBackoffMs: [], halfCloseGraceMs: 5 } });
  const service = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        socket.write(random(3) === 0 ? 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok' : babble());
        if (random(4) === 0) socket.close();
        else if (random(6) === 0) socket.terminate();
      },
    },
  });
  using _ = { [Symbol.dispose]: () => service.stop(true) };
  fixture.sandbox('one');
  fixture.mapPort(80, service.port);
  for (let round = 0; round < rounds; round++) {
    const client = await RawSocket.connect(fixture.port);
    client.send(`${random(2) === 0 ? 'GET / HTTP/1.1\r\nHost: 80-one.x\r\n\r\n' : ''}${babble()}`);
    await Bun.sleep(0);
    client.send(babble());
    await Bun.sleep(0);
    if (random(2) === 0) client.reset();
    else client.close();
  }
  while (fixture.edge.stats().clientConnections > 0 || fixture.edge.stats().inSandboxes > 0) await Bun.sleep(5);
  expect(fixture.complaints).toEqual([]);
  expect((await fetch(fixture.url)).status).toBe(200);
  expect((await fetch(fixture.url, { headers: to('none', 80) })).status).toBe(502);
}, 30_000);
