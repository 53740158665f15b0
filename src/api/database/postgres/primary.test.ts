import { afterEach, expect, test } from 'bun:test';
import type { Socket } from 'bun';
import type pg from 'pg';
import { connectToPrimary, isLeft, Primary, type Timeline } from './primary.ts';

// Tests the choice among several servers, whose answers the test sets. `test/cluster-long` has real ones that are cut
// off and promoted.

const cleanUps: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const int32 = (number: number) => Buffer.from([number >> 24, number >> 16, number >> 8, number]);
const int16 = (number: number) => int32(number).subarray(2);

/** A message of the server (PostgreSQL's protocol 3.0): a letter, its length, and the rest. */
function message(letter: string, ...parts: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map(part => Buffer.from(part as string)));
  return Buffer.concat([Buffer.from(letter), int32(body.length + 4), body]);
}
const ready = message('Z', 'I');
const letsIn = Buffer.concat([message('R', int32(0)), ready]);

/** A server's answer about what it is. */
function facts({ systemId, timeline }: Timeline, isStandby = false): Buffer {
  const values = { isStandby: isStandby ? 't' : 'f', systemId, timeline: String(timeline) };
  const types = { isStandby: 16, systemId: 25, timeline: 23 };
  const columns = Object.entries(types).map(([name, type]) =>
    Buffer.concat([Buffer.from(`${name}\0`), int32(0), int16(0), int32(type), int16(-1), int32(-1), int16(0)]),
  );
  const cells = Object.values(values).map(value => Buffer.concat([int32(value.length), Buffer.from(value)]));
  const row = [message('T', int16(3), ...columns), message('D', int16(3), ...cells), message('C', 'SELECT 1\0')];
  return Buffer.concat([...row, ready]);
}

type Connection = { socket: Socket; isOpen: boolean; isIn: boolean };

/** A server; `answers` gives its answer about itself to each connection. */
function scriptedServer(answers: () => Buffer) {
  const connections: Connection[] = [];
  const of = (socket: Socket) => connections.find(connection => connection.socket === socket);
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: socket => void connections.push({ socket, isOpen: true, isIn: false }),
      close(socket) {
        const connection = of(socket);
        if (connection) connection.isOpen = false;
      },
      end: socket => void socket.end(),
      data(socket, bytes) {
        const connection = of(socket);
        if (!connection) return;
        for (let at = 0; at < bytes.length;) {
          if (!connection.isIn) {
            connection.isIn = true;
            socket.write(letsIn);
            at += bytes.readInt32BE(at);
            continue;
          }
          const letter = bytes.toString('latin1', at, at + 1);
          at += 1 + bytes.readInt32BE(at + 1);
          if (letter === 'X') socket.end();
          if (letter === 'Q') socket.write(answers());
        }
      },
    },
  });
  return {
    connections,
    url: `postgres://user@127.0.0.1:${listener.port}/db?sslmode=disable`,
    open: () => connections.filter(({ isOpen }) => isOpen),
    [Symbol.dispose]: () => listener.stop(true),
  };
}

type Server = ReturnType<typeof server>;

/** A server on a timeline of the database, which can become a standby and be promoted. */
function server(timeline: number, isStandby = false) {
  const here: Timeline = { systemId: 's', timeline };
  const it = { here, isStandby };
  const scripted = scriptedServer(() => facts(here, it.isStandby));
  cleanUps.push(() => scripted[Symbol.dispose]());
  return { ...scripted, it };
}

const urlOf = (...servers: Server[]) => {
  const places = servers.map(({ url }) => new URL(url).host);
  return `postgres://user@${places.join(',')}/db?sslmode=disable`;
};

function primaryAmong(servers: Server[], settings: pg.PoolConfig = {}): Primary {
  const primary = new Primary(urlOf(...servers), { max: 2, ...settings });
  cleanUps.push(() => primary.end());
  return primary;
}

/** The port that a connection leads to. */
const portOf = (client: pg.PoolClient) => (client as unknown as pg.Client).port;
const leadsTo = (client: pg.PoolClient, { url }: Server) => portOf(client) === Number(new URL(url).port);
const until = async (holds: () => boolean) => {
  while (!holds()) await Bun.sleep(1);
};
const standby = 'it is a standby: it follows another server and takes no changes';
const older = 'it is on an older timeline: another server was promoted since';

test('a timeline is abandoned where a newer one of the same database is known', () => {
  const newest = { systemId: 's', timeline: 2 };
  const left = [1, 2, 3].map(timeline => isLeft({ systemId: 's', timeline }, newest));
  expect(left).toEqual([true, false, false]);
  expect([isLeft({ systemId: 'other', timeline: 1 }, newest), isLeft(newest, null)]).toEqual([false, false]);
});

test('a single server is used, and each connection knows its timeline', async () => {
  const one = server(3);
  const primary = primaryAmong([one]);
  expect(primary.newest).toBeNull();
  const client = await primary.connect();
  expect([primary.timelineOf(client), primary.newest]).toEqual([one.it.here, one.it.here]);
  expect(primary.timelineOf({} as pg.PoolClient)).toBeNull();
  client.release();
  // The connection exists already.
  (await primary.connect()).release();
  expect(one.connections).toHaveLength(1);
});

test('a single server that is a standby is refused', async () => {
  await expect(primaryAmong([server(1, true)]).connect()).rejects.toThrow(standby);
});

test('of several servers that accept changes the one on the newest timeline is used', async () => {
  const [follows, earlier, newest] = [server(9, true), server(1), server(2)];
  for (const order of [
    [follows, earlier, newest],
    [newest, earlier, follows],
  ]) {
    const client = await primaryAmong(order).connect();
    expect(leadsTo(client, newest)).toBe(true);
    client.release();
  }
});

test('if none accepts changes, the error says why for each', async () => {
  const [follows, gone] = [server(1, true), server(1)];
  gone[Symbol.dispose]();
  await expect(primaryAmong([follows, gone]).connect()).rejects.toThrow(
    new RegExp(`^none of 2 servers takes changes \\(server 1: ${standby}; server 2: .*ECONNREFUSED.*\\)$`),
  );
});

test('if a server has become a standby, the promoted one is found', async () => {
  const [first, second] = [server(1), server(1, true)];
  const primary = primaryAmong([first, second]);
  const client = await primary.connect();
  first.it.isStandby = true;
  Object.assign(second.it, { isStandby: false });
  second.it.here.timeline = 2;
  primary.lost(client);
  const next = await primary.connect();
  expect([leadsTo(next, second), primary.newest?.timeline]).toEqual([true, 2]);
  // A connection in use ends as soon as it is given back.
  expect(first.open()).toHaveLength(1);
  client.release();
  await until(() => first.open().length === 0);
  next.release();
  // The first server is back, as the primary that it was: it is never chosen.
  first.it.isStandby = false;
  second[Symbol.dispose]();
  primary.lost(next);
  await expect(primary.connect()).rejects.toThrow(`server 1: ${older}`);
});

test('somebody else’s connection says nothing about the server', async () => {
  const [first, second] = [server(1), server(1, true)];
  const primary = primaryAmong([first, second]);
  (await primary.connect()).release();
  const before = first.connections.length;
  primary.lost({} as pg.PoolClient);
  (await primary.connect()).release();
  expect(first.connections).toHaveLength(before);
});

test('a further connection to a server that has gone back to an older timeline is refused', async () => {
  const one = server(5);
  const primary = primaryAmong([one]);
  const client = await primary.connect();
  one.it.here.timeline = 4;
  await expect(primary.connect()).rejects.toThrow(older);
  expect(primary.newest?.timeline).toBe(5);
  client.release();
});

test('if a server is gone, another one is asked at once', async () => {
  const [first, second] = [server(1), server(1, true)];
  const primary = primaryAmong([first, second]);
  (await primary.connect()).release(true);
  first[Symbol.dispose]();
  second.it.isStandby = false;
  const client = await primary.connect();
  expect(leadsTo(client, second)).toBe(true);
  client.release();
});

test('a server that fails as soon as it was found is checked by the next caller', async () => {
  const first = server(1);
  // One connection to check the server, and then the requested one.
  let connections = 0;
  const flapping = scriptedServer(() => facts({ systemId: 's', timeline: 2 }, ++connections === 2));
  cleanUps.push(() => flapping[Symbol.dispose]());
  const primary = primaryAmong([{ ...flapping, it: first.it }, server(1, true)]);
  await expect(primary.connect()).rejects.toThrow(standby);
  (await primary.connect()).release();
});

test('if a further connection finds a standby, the promoted server is looked for', async () => {
  const [first, second] = [server(1), server(2, true)];
  const primary = primaryAmong([first, second]);
  const held = await primary.connect();
  first.it.isStandby = true;
  second.it.isStandby = false;
  const client = await primary.connect();
  expect(leadsTo(client, second)).toBe(true);
  client.release();
  // The other server's connections end after their use.
  held.release();
  await until(() => first.open().length === 0);
});

test('a single server that refuses, or whose connections are all in use, is not asked again', async () => {
  const full = primaryAmong([server(1)], { max: 1, connectionTimeoutMillis: 20 });
  const client = await full.connect();
  await expect(full.connect()).rejects.toThrow('timeout');
  client.release();
  (await full.connect()).release();
  let connections = 0;
  const flapping = scriptedServer(() => facts({ systemId: 's', timeline: 1 }, ++connections === 2));
  cleanUps.push(() => flapping[Symbol.dispose]());
  const single = primaryAmong([{ ...flapping, it: server(1).it }]);
  const held = await single.connect();
  await expect(single.connect()).rejects.toThrow(standby);
  held.release();
});

test('if all connections are in use, no other server is asked', async () => {
  const [first, second] = [server(1), server(1, true)];
  const primary = primaryAmong([first, second], { max: 1 });
  const client = await primary.connect();
  const asked = second.connections.length;
  const waiting = primary.connect();
  client.release();
  const next = await waiting;
  expect([leadsTo(next, first), second.connections.length]).toEqual([true, asked]);
  next.release();
});

test('however many callers wait, the servers are checked once', async () => {
  const [first, second] = [server(1), server(1, true)];
  const primary = primaryAmong([first, second]);
  const clients = await Promise.all([primary.connect(), primary.connect()]);
  expect([first.connections.length, second.connections.length]).toEqual([3, 1]);
  // Connections that only asked have ended.
  await until(() => first.open().length === 2 && second.open().length === 0);
  for (const client of clients) client.release();
});

/** Resolves when a client has noticed that its connection is closed. */
const noticed = (client: pg.PoolClient | pg.Client) => new Promise<void>(resolve => client.once('end', resolve));

test('a connection that the server closes ends nothing else', async () => {
  const one = server(1);
  const primary = primaryAmong([one]);
  const [held, idle] = [await primary.connect(), await primary.connect()];
  idle.release();
  await using asked = await connectToPrimary(one.url, {});
  const all = Promise.all([held, idle, asked.client].map(noticed));
  for (const { socket } of one.connections) socket.terminate();
  await all;
  held.release(true);
  const next = await primary.connect();
  expect(primary.timelineOf(next)).toEqual(one.it.here);
  next.release();
});

test('after its end nothing is open, and nothing connects', async () => {
  const [one, other] = [server(1), server(1, true)];
  // Idle connections stay open.
  const primary = new Primary(urlOf(one, other), { idleTimeoutMillis: 0 });
  const looking = primary.connect();
  const ended = primary.end();
  (await looking.catch(() => null))?.release();
  await ended;
  await until(() => one.open().length === 0);
  const closed = new Primary(urlOf(one), {});
  await closed.end();
  await expect(closed.connect()).rejects.toThrow('the database was closed');
});

test('a connection outside of the pool reaches the primary too, and ends after its use', async () => {
  const [first, second] = [server(1, true), server(2)];
  {
    await using asked = await connectToPrimary(urlOf(first, second), {});
    expect(asked.timeline).toEqual(second.it.here);
  }
  await until(() => second.open().length === 0);
  await expect(connectToPrimary(urlOf(first, second), {}, { systemId: 's', timeline: 3 })).rejects.toThrow(older);
  // A refused connection does not stay open.
  await expect(connectToPrimary(urlOf(first), {})).rejects.toThrow(standby);
  await until(() => first.open().length === 0 && second.open().length === 0);
});
