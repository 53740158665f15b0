import { afterEach, expect, test } from 'bun:test';
import type { Socket } from 'bun';
import { silentLog } from '../../base/telemetry/log.ts';
import type { SandboxLogEntry } from '../../protocol/logs.ts';
import { openNetworkNamespace } from '../native/netns.ts';
import { type FollowTimes, LogFollower } from './follow-log.ts';
import type { LogSink } from './log-intake.ts';
import type { AgentPlace } from './log-line.ts';

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Follows a server that stands in for an agent: `serve` gets each connection and the request on it. */
function follow(
  serve: (socket: Socket, request: string) => void,
  options: { createdMs?: number; known?: AgentPlace; times?: FollowTimes } = {},
) {
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: (socket, bytes) => serve(socket, bytes.toString()) },
  });
  const own = openNetworkNamespace(process.pid);
  const namespace = { ...own, connect: () => own.connect('ipv4', server.port) };
  const [added, gaps]: [{ entry: SandboxLogEntry; place: AgentPlace }[], string[]] = [[], []];
  const sink: LogSink = {
    gap: text => void gaps.push(text),
    add: (entry, place) => void added.push({ entry, place }),
    place: async () => options.known,
  };
  const followed = { sandboxId: 's', namespace, controlToken: 't', createdMs: options.createdMs };
  const follower = new LogFollower(followed, sink, silentLog, options.times);
  cleanUps.push(
    () => server.stop(true),
    () => own.close(),
    () => follower.stop(),
  );
  return { added, gaps, follower };
}

const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const line = (n: number, message = `entry ${n}`, t = Date.now()) =>
  `${JSON.stringify({ n, t, l: 1, logger: 'process', message, fields: {} })}\n`;
const epoch = (name: string) => `${JSON.stringify({ epoch: name })}\n`;
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(5);
}

test('each report of an agent is taken once, over broken connections, from the known place on', async () => {
  const requests: string[] = [];
  const { added, gaps } = follow(
    (socket, request) => {
      requests.push(request.split(' ')[1] ?? '');
      const lines = requests.length === 1 ? [1, 2, 3] : requests.length === 2 ? [3, 4, 9] : [10];
      socket.write(head + chunk(epoch('abc') + lines.map(n => line(n)).join('')));
      if (requests.length < 3) socket.end();
    },
    { createdMs: 0 },
  );
  await until(() => added.length === 6);
  expect(added.map(({ place }) => place)).toEqual([1, 2, 3, 4, 9, 10].map(number => ({ epoch: 'abc', number })));
  expect(requests).toEqual(['/logs', '/logs?epoch=abc&after=3', '/logs?epoch=abc&after=9']);
  expect(gaps).toEqual(['4 entries were dropped: there were too many at a time']);
});

test('another agent’s numbers are its own; what is older than the sandbox is another’s', async () => {
  const { added } = follow(
    socket => void socket.write(head + chunk(epoch('b') + line(1, 'of the one before', 1000) + line(2) + line(3))),
    { createdMs: Date.now() - 1000 },
  );
  await until(() => added.length === 2);
  expect(added.map(({ entry }) => entry.message)).toEqual(['entry 2', 'entry 3']);
  const later = follow(socket => void socket.write(head + chunk(epoch('c') + line(1))), {
    known: { epoch: 'b', number: 7 },
  });
  await until(() => later.added.length === 1);
});

test('lines come in parts of any size', async () => {
  const text = epoch('a') + line(1, 'é'.repeat(3000)) + line(2);
  const { added } = follow(
    socket =>
      void socket.write(
        Buffer.concat([
          Buffer.from(head),
          ...[...Buffer.from(text)].map(byte =>
            Buffer.concat([Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')]),
          ),
        ]),
      ),
    { createdMs: 0 },
  );
  await until(() => added.length === 2);
  expect(added.map(({ entry }) => entry.message)).toEqual(['é'.repeat(3000), 'entry 2']);
});

test('gaps are reported only so often', async () => {
  const { added, gaps } = follow(
    socket =>
      void socket.write(
        head + chunk(epoch('a') + line(1) + Array.from({ length: 700 }, (_, gap) => line(gap * 2 + 3, '')).join('')),
      ),
    { createdMs: 0 },
  );
  await until(() => gaps.some(gap => gap.startsWith('entries are dropped')));
  expect(added.length + gaps.length).toBeLessThanOrEqual(1001);
});

test.each([
  ['no HTTP', 'garbage\r\n\r\n'],
  ['another status', 'HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno'],
  ['no log', head + chunk('{"what": 1}\n')],
  ['an entry before its epoch', head + chunk(line(1))],
  ['an endless line', head + chunk('x'.repeat(100_000))],
  ['a broken chunk', `${head}zz\r\n`],
  ['an endless size of a chunk', head + '0'.repeat(100_000)],
])('%s is left, asked again, and believed nothing of', async (_, answer) => {
  let asked = 0;
  const { added } = follow(
    socket => {
      asked++;
      socket.write(answer);
      if (answer.includes('{"n"')) socket.end();
    },
    { createdMs: 0 },
  );
  await until(() => asked >= 2);
  expect(added).toEqual([]);
});

test('an agent that reports without end is read at a limited rate, and stopping does not wait for it', async () => {
  let sent = 0;
  let number = 0;
  const flood = (socket: Socket) => {
    for (;;) {
      const text = chunk(line(++number, 'x'.repeat(1000)));
      const written = socket.write(text);
      sent += Math.max(written, 0);
      // A message that was written only in part can't be continued here: the connection stays as full as it is.
      if (written < text.length) return;
    }
  };
  const { added, gaps, follower } = follow(
    socket => {
      socket.write(head + chunk(epoch('a')));
      flood(socket);
    },
    { createdMs: 0 },
  );
  await until(() => gaps.length > 0 || added.length > 100);
  // A window: a follower without a bound would read on during it.
  await Bun.sleep(300);
  expect(added.length).toBeLessThanOrEqual(1000);
  const readBytes = added.reduce((sum, { entry }) => sum + entry.message.length, 0);
  expect(readBytes).toBeLessThan(1 << 20);
  expect(sent).toBeGreaterThan(1 << 20);
  await follower.stop();
});

test('an agent that reports in the smallest pieces is read more slowly', async () => {
  let number = 0;
  const pieces = (text: string) => [...text].map(chunk).join('');
  const { added, follower } = follow(
    socket => {
      const lines = Array.from({ length: 600 }, () => line(++number));
      socket.write(head + chunk(epoch('a')) + pieces(lines.join('')));
    },
    { createdMs: 0 },
  );
  await until(() => added.length > 0);
  // A window: without a bound on pieces, all would arrive during it.
  await Bun.sleep(300);
  expect(added.length).toBeLessThan(200);
  await follower.stop();
});

test('a quiet agent is asked from time to time, when its log is read, and heard when somebody comes', async () => {
  const requests: string[] = [];
  let waiting: number[] = [1];
  const serve = (socket: Socket, request: string) => {
    const path = request.split(' ')[1] ?? '';
    requests.push(path);
    const after = Number(/after=(\d+)/.exec(path)?.[1] ?? 0);
    socket.write(
      head +
        chunk(
          epoch('a') +
            waiting
              .filter(n => n > after)
              .map(n => line(n))
              .join(''),
        ),
    );
    if (path.includes('once=1')) socket.end();
  };
  const often = follow(serve, { createdMs: 0, times: { quietMs: 30, askEveryMs: 20 } });
  await until(() => requests.filter(path => path === '/logs?epoch=a&after=1&once=1').length >= 2);
  waiting = [1, 2];
  // An agent that has something to report is listened to again.
  await until(() => requests.includes('/logs?epoch=a&after=2'));
  expect(often.added.map(({ place }) => place.number)).toEqual([1, 2]);
  await often.follower.stop();

  requests.length = 0;
  waiting = [1];
  const { added, follower } = follow(serve, { createdMs: 0, times: { quietMs: 30, askEveryMs: 60_000 } });
  await until(() => added.length === 1);
  waiting = [1, 2];
  await until(async () => (await follower.catchUp(), added.length === 2));
  expect(requests).toEqual([
    '/logs',
    ...requests.slice(1, -1).map(() => '/logs?epoch=a&after=1&once=1'),
    '/logs?epoch=a&after=1&once=1',
  ]);
  follower.wake();
  await until(() => requests.at(-1) === '/logs?epoch=a&after=2');
});

test('at the end, entries still in the agent are fetched if somebody used the sandbox', async () => {
  let asked = 0;
  const { added, follower } = follow(
    (socket, request) => {
      const once = request.includes('once=1');
      if (once) asked++;
      const lines = once ? [2, 3] : [1];
      socket.write(head + chunk(epoch('abc') + lines.map(n => line(n)).join('')) + (once ? '0\r\n\r\n' : ''));
    },
    { createdMs: 0 },
  );
  await until(() => added.length === 1);
  await follower.complete();
  expect([asked, added.length]).toEqual([0, 1]);
  follower.wake();
  await follower.complete();
  expect(added.map(({ place }) => place.number)).toEqual([1, 2, 3]);
  await follower.stop();
  await follower.complete();
  expect(asked).toBe(1);
});

test('a sandbox that somebody came to is asked at its end, however soon that is', async () => {
  const { added, follower } = follow(socket => socket.write(`${head}${chunk(epoch('abc') + line(1))}0\r\n\r\n`), {
    createdMs: 0,
  });
  follower.wake();
  await follower.complete();
  expect(added.map(({ place }) => place.number)).toEqual([1]);
});

test('an agent that does not answer holds up no reader of its log', async () => {
  let mute = false;
  let asked = 0;
  const serve: Parameters<typeof follow>[0] = socket => {
    asked++;
    if (!mute) socket.write(head + chunk(epoch('a') + line(1)));
  };
  const { added, follower } = follow(serve, { createdMs: 0, times: { quietMs: 20, askEveryMs: 60_000 } });
  await until(() => added.length === 1);
  mute = true;
  // While the follower still listens, catching up asks nothing.
  await until(async () => (await follower.catchUp(), asked > 1));
  expect(added).toHaveLength(1);
});

test('an agent that reports a little without end holds nobody up either', async () => {
  let asked = 0;
  const serve: Parameters<typeof follow>[0] = socket => {
    let number = ++asked;
    socket.write(head + chunk(epoch('a') + line(number)));
    if (asked === 1) return;
    const more = setInterval(() => void socket.write(chunk(line(++number))), 50);
    cleanUps.push(() => clearInterval(more));
  };
  const { added, follower } = follow(serve, { createdMs: 0, times: { quietMs: 20, askEveryMs: 60_000 } });
  await until(() => added.length === 1);
  await until(async () => (await follower.catchUp(), asked > 1));
  expect(added.length).toBeGreaterThan(2);
});
