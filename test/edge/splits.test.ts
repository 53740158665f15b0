import { expect, test } from 'bun:test';
import { startFixture } from './support/fixture.ts';
import { RawSocket } from './support/raw-socket.ts';

/** Enough for a cut at every boundary of a head and a body. */
const rounds = 150;

/** Numbers below `max`, the same in every run. */
function seeded(seed: number): (max: number) => number {
  let state = seed;
  return max => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * max);
  };
}

/** Where to cut a text of `length`: now and then into single bytes, otherwise into a few pieces. */
function cutsOf(length: number, random: (max: number) => number): number[] {
  if (random(10) === 0) return Array.from({ length }, (_, i) => i + 1);
  const cuts = Array.from({ length: random(8) }, () => random(length));
  return [...new Set([...cuts, length])].sort((a, b) => a - b);
}

/** A server that sends back everything it gets on one request, in randomly cut pieces. */
function startShredder(random: (max: number) => number) {
  return Bun.listen<{ got: string }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { got: '' };
      },
      async data(socket, bytes) {
        socket.data.got += bytes.toString('latin1');
        for (let end = endOfRequest(socket.data.got); end > 0; end = endOfRequest(socket.data.got)) {
          const request = socket.data.got.slice(0, end).replace(/x-forwarded.*\r\n/gi, '');
          socket.data.got = socket.data.got.slice(end);
          const chunked = random(2) === 0;
          const response = chunked
            ? `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${request.length.toString(16)}\r\n${request}\r\n0\r\n\r\n`
            : `HTTP/1.1 200 OK\r\nContent-Length: ${request.length}\r\n\r\n${request}`;
          let start = 0;
          for (const cut of cutsOf(response.length, random)) {
            socket.write(Buffer.from(response.slice(start, cut), 'latin1'));
            start = cut;
            if (random(3) === 0) await Bun.sleep(0);
          }
        }
      },
    },
  });
}

function endOfRequest(text: string): number {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return 0;
  const length = Number(/content-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
  if (/transfer-encoding/i.test(text.slice(0, head))) {
    const last = text.indexOf('\r\n0\r\n\r\n', head);
    return last < 0 ? 0 : last + 7;
  }
  return text.length < head + 4 + length ? 0 : head + 4 + length;
}

/** The bodies of a series of responses. */
function bodiesOf(text: string): string[] {
  const bodies: string[] = [];
  let rest = text;
  while (rest !== '') {
    const head = rest.indexOf('\r\n\r\n') + 4;
    const length = /content-length: (\d+)/i.exec(rest.slice(0, head))?.[1];
    if (length !== undefined) {
      bodies.push(rest.slice(head, head + Number(length)));
      rest = rest.slice(head + Number(length));
    } else {
      const sizeEnd = rest.indexOf('\r\n', head);
      const size = Number.parseInt(rest.slice(head, sizeEnd), 16);
      bodies.push(rest.slice(sizeEnd + 2, sizeEnd + 2 + size));
      rest = rest.slice(sizeEnd + 2 + size + '\r\n0\r\n\r\n'.length);
    }
  }
  return bodies;
}

test('the same bytes mean the same, however they are cut on either side', async () => {
  const random = seeded(42);
  await using fixture = startFixture({ api: () => new Response('api') });
  const shredder = startShredder(random);
  using _ = { [Symbol.dispose]: () => shredder.stop(true) };
  fixture.sandbox('one');
  fixture.mapPort(80, shredder.port);
  const host = 'Host: 80-one.x\r\n';
  const requests = [
    `GET /1 HTTP/1.1\r\n${host}X-A: b\r\n\r\n`,
    `POST /2 HTTP/1.1\r\n${host}Content-Length: 11\r\n\r\nGET / HTTP/`,
    `POST /3 HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n4;e=f\r\nab\r\n\r\n1c\r\nGET /x HTTP/1.1\r\nHost: y\r\n\r\n\r\n0\r\n\r\n`,
    `GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    `GET /4 HTTP/1.1\r\n${host}\r\n`,
    `POST /5 HTTP/1.1\r\nHost: 80-no.x\r\nContent-Length: 3\r\n\r\nabc`,
    `GET /6 HTTP/1.1\r\n${host}\r\n`,
  ];
  const all = requests.join('');
  let expected: string[] | undefined;
  for (let round = 0; round < rounds; round++) {
    const client = await RawSocket.connect(fixture.port);
    let start = 0;
    for (const cut of cutsOf(all.length, random)) {
      client.send(all.slice(start, cut));
      start = cut;
      if (random(2) === 0) await Bun.sleep(0);
    }
    client.send(`GET /last HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    await client.until(raw => raw.ended);
    const bodies = bodiesOf(client.received);
    client.close();
    expected ??= bodies;
    expect(bodies).toEqual(expected);
  }
  expect(expected?.length).toBe(requests.length + 1);
  expect(expected?.slice(0, 3)).toEqual(requests.slice(0, 3));
  expect(expected?.slice(3)).toEqual([
    'api',
    requests[4],
    expect.stringContaining('"code":502'),
    requests[6],
    expect.stringContaining('/last'),
  ] as string[]);
}, 60_000);

test('a malformed request is refused, however it is cut', async () => {
  const random = seeded(7);
  await using fixture = startFixture();
  const good = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  const bad = [
    'GET / HTTP/1.1\nHost: x\n\n',
    'GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: x\r\nA: b\n\r\n\r\n',
    'GE\x00 / HTTP/1.1\r\nHost: x\r\n\r\n',
  ];
  for (let round = 0; round < rounds; round++) {
    const text = good + bad[round % bad.length] + good;
    const client = await RawSocket.connect(fixture.port);
    let start = 0;
    for (const cut of cutsOf(text.length, random)) {
      client.send(text.slice(start, cut));
      start = cut;
      if (random(2) === 0) await Bun.sleep(0);
    }
    await client.until(raw => raw.ended);
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
    client.close();
  }
}, 60_000);
