import { afterEach, expect, test } from 'bun:test';
import type { Socket } from 'bun';
import { credentialChannel } from '../migrations/first/credential-changes.ts';
import { sandboxChannel } from '../migrations/first/replicas.ts';
import type { Timeline } from './primary.ts';
import { ChangeWatch } from './watch.ts';

// Tests the watch against a server that answers as the test says. `test/api/database` uses a real one.

const cleanUps: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const here: Timeline = { systemId: 's', timeline: 1 };

const int32 = (number: number) => Buffer.from([number >> 24, number >> 16, number >> 8, number]);
const int16 = (number: number) => int32(number).subarray(2);

/** A message of the server (PostgreSQL's protocol 3.0): a letter, its length, and the rest. */
function message(letter: string, ...parts: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map(part => Buffer.from(part as string)));
  return Buffer.concat([Buffer.from(letter), int32(body.length + 4), body]);
}
const letsIn = message('R', int32(0));
const ready = message('Z', 'I');

/** A server's answer about what it is. */
function facts(isStandby: boolean): Buffer {
  const values = { isStandby: isStandby ? 't' : 'f', systemId: here.systemId, timeline: String(here.timeline) };
  const types = { isStandby: 16, systemId: 25, timeline: 23 };
  const columns = Object.entries(types).map(([name, type]) =>
    Buffer.concat([Buffer.from(`${name}\0`), int32(0), int16(0), int32(type), int16(-1), int32(-1), int16(0)]),
  );
  const cells = Object.values(values).map(value => Buffer.concat([int32(value.length), Buffer.from(value)]));
  const row = [message('T', int16(3), ...columns), message('D', int16(3), ...cells), message('C', 'SELECT 1\0')];
  return Buffer.concat([...row, ready]);
}

type Connection = { socket: Socket; isOpen: boolean; said: string[] };

/** A server; `answers` gets each query and returns the answer, null for the usual one. */
function server(answers: (query: string, connection: number) => Buffer | null = () => null) {
  const connections: Connection[] = [];
  let accepts = true;
  const of = (socket: Socket) => connections.find(connection => connection.socket === socket);
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: socket => void connections.push({ socket, isOpen: true, said: [] }),
      close(socket) {
        const connection = of(socket);
        if (connection) connection.isOpen = false;
      },
      end: socket => void socket.end(),
      data(socket, bytes) {
        const connection = of(socket);
        if (!connection) return;
        for (let at = 0; at < bytes.length;) {
          if (connection.said.length === 0) {
            connection.said.push('hello');
            if (accepts) socket.write(Buffer.concat([letsIn, ready]));
            at += bytes.readInt32BE(at);
            continue;
          }
          const letter = bytes.toString('latin1', at, at + 1);
          const length = bytes.readInt32BE(at + 1);
          const text = bytes.toString('utf8', at + 5, at + 1 + length).replace(/\0$/, '');
          at += 1 + length;
          connection.said.push(letter === 'Q' ? text : letter);
          if (letter === 'X') socket.end();
          if (letter !== 'Q') continue;
          const usual = text.includes('pg_is_in_recovery')
            ? facts(false)
            : Buffer.concat([message('C', 'LISTEN\0'), ready]);
          socket.write(answers(text, connections.indexOf(connection)) ?? usual);
        }
      },
    },
  });
  cleanUps.push(() => listener.stop(true));
  return {
    connections,
    url: `postgres://user@127.0.0.1:${listener.port}/db?sslmode=disable`,
    open: () => connections.filter(({ isOpen }) => isOpen),
    listening: () => connections.filter(({ isOpen, said }) => isOpen && said.some(text => text.startsWith('listen'))),
    accept: (does: boolean) => void (accepts = does),
    notify: (channel: string, payload: string) =>
      connections.at(-1)?.socket.write(message('A', int32(1), `${channel}\0`, `${payload}\0`)),
  };
}

function watch(url: string) {
  const watching = new ChangeWatch(url, () => here);
  cleanUps.push(() => watching.close());
  const heard: (string[] | null)[] = [];
  const stop = watching.onSandboxes(ids => void heard.push(ids && [...ids].toSorted()));
  return { watching, heard, stop };
}
const until = async (holds: () => boolean) => {
  while (!holds()) await Bun.sleep(5);
};

test('simultaneous changes of sandboxes are reported together, and those of credentials once', async () => {
  const { url, listening, notify } = server();
  const { watching, heard, stop } = watch(url);
  await until(() => listening().length === 1 && !watching.changedElsewhere());
  heard.length = 0;
  for (const id of ['b', 'a', 'b']) notify(sandboxChannel, id);
  await until(() => heard.length > 0);
  notify(sandboxChannel, 'c');
  await until(() => heard.length > 1);
  expect(heard).toEqual([['a', 'b'], ['c']]);
  expect(watching.changedElsewhere()).toBeFalse();
  notify(credentialChannel, '');
  await until(() => watching.changedElsewhere());
  expect(watching.changedElsewhere()).toBeFalse();
  stop();
  notify(sandboxChannel, 'd');
  notify(credentialChannel, '');
  await until(() => watching.changedElsewhere());
  // A window in which gathered changes would be reported.
  await Bun.sleep(20);
  expect(heard).toHaveLength(2);
});

test('without a connection anything may have changed, and also right after it returns', async () => {
  const { url, connections, listening } = server();
  const { watching, heard } = watch(url);
  await until(() => listening().length === 1 && !watching.changedElsewhere());
  heard.length = 0;
  connections[0]?.socket.terminate();
  await until(() => watching.changedElsewhere());
  expect(watching.changedElsewhere()).toBeTrue();
  await until(() => listening().length === 1 && heard.length > 0);
  expect(heard).toEqual([null]);
  expect([watching.changedElsewhere(), watching.changedElsewhere()]).toEqual([true, false]);
});

test('a connection that may not listen is ended before another one is made', async () => {
  const refused = Buffer.concat([message('E', 'SERROR\0', 'C42501\0', 'Mnot allowed\0', '\0'), ready]);
  const { url, open, connections, listening } = server((query, connection) =>
    query.startsWith('listen') && connection < 2 ? refused : null,
  );
  const { watching } = watch(url);
  await until(() => connections.length === 2);
  expect([watching.changedElsewhere(), watching.changedElsewhere()]).toEqual([true, true]);
  await until(() => listening().length === 1 && !watching.changedElsewhere());
  expect(connections.map(({ said }) => said.at(-1) === 'X')).toEqual([true, true, false]);
  expect(open()).toHaveLength(1);
});

test('a standby is left, and tried again later', async () => {
  const { url, connections, listening } = server((query, connection) =>
    query.includes('pg_is_in_recovery') && connection === 0 ? facts(true) : null,
  );
  const { watching } = watch(url);
  await until(() => listening().length === 1 && !watching.changedElsewhere());
  expect(connections.map(({ said }) => said.at(-1) === 'X')).toEqual([true, false]);
});

test('after a close nothing is connected or reported, and nothing connects again', async () => {
  const { url, open, connections, listening, notify } = server();
  const { watching, heard } = watch(url);
  await until(() => listening().length === 1);
  heard.length = 0;
  notify(sandboxChannel, 'a');
  await watching.close();
  await until(() => open().length === 0);
  // A window in which it would have connected again.
  await Bun.sleep(1_100);
  expect([connections.length, heard]).toEqual([1, []]);
});

test('a close while it connects ends that connection too', async () => {
  const { url, open, connections, accept } = server();
  accept(false);
  const { watching } = watch(url);
  await until(() => connections[0]?.said.length === 1);
  await watching.close();
  connections[0]?.socket.write(Buffer.concat([letsIn, ready]));
  await until(() => open().length === 0);
  expect(connections.flatMap(({ said }) => said.filter(text => text.startsWith('listen')))).toEqual([]);
});
