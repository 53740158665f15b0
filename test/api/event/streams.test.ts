import { expect, test } from 'bun:test';
import { streamsPerTeamMax } from '../../../src/api/http/open-streams.ts';
import type { SandboxLogEntry } from '../../../src/protocol/logs.ts';
import { Platform, until } from '../platform.ts';
import { messagesOf } from '../support/stream-messages.ts';

const entry = (timestampMs: number): SandboxLogEntry => ({
  timestampMs,
  level: 'info',
  logger: 'process',
  message: `line ${timestampMs}\nid: 9`,
  fields: {},
});

/** Follows a stream. Answers its next message, in parts. */
async function follow(platform: Platform, path: string, headers: Record<string, string> = {}) {
  const stop = new AbortController();
  const response = await fetch(`http://api${path}`, {
    unix: platform.socketPath,
    headers: { 'x-api-key': platform.key, ...headers },
    signal: stop.signal,
  });
  const messages = messagesOf(response);
  return {
    status: response.status,
    stop: () => stop.abort(),
    async next() {
      const { value, done } = await messages.next();
      if (done) return null;
      const part = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(value)?.[1];
      return { event: part('event') ?? 'message', id: part('id'), data: JSON.parse(part('data') ?? '{}') as object };
    },
  };
}
const ids = async (stream: Awaited<ReturnType<typeof follow>>, count: number) => {
  const found = [];
  for (let index = 0; index < count; index++) found.push((await stream.next())?.id);
  return found;
};

test('the log of a sandbox is told as it grows, from where one was, and to its end', async () => {
  await using platform = await Platform.start();
  const { sandboxID } = await platform.createSandbox();
  const path = `/sandboxes/${sandboxID}/logs/stream`;
  platform.node.logEntries = [entry(10), entry(20), entry(30)];

  const tail = await follow(platform, `${path}?tail=2`);
  expect(await tail.next()).toMatchObject({ event: 'ready', id: '19', data: { after: 19 } });
  expect(await tail.next()).toMatchObject({ event: 'message', id: '20', data: { message: 'line 20\nid: 9' } });
  expect(await ids(tail, 1)).toEqual(['30']);
  const now = await follow(platform, path);
  expect(await now.next()).toMatchObject({ event: 'ready', id: '30' });
  platform.node.logEntries.push(entry(40));
  expect(await ids(tail, 1)).toEqual(['40']);
  expect(await ids(now, 1)).toEqual(['40']);

  // Other readers name the last event in a header, and request the same address again.
  const again = await follow(platform, `${path}?after=10`, { 'last-event-id': '30' });
  expect(await ids(again, 2)).toEqual(['30', '40']);
  const all = await follow(platform, `${path}?after=0`);
  expect(await ids(all, 5)).toEqual(['0', '10', '20', '30', '40']);

  expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
  for (const stream of [tail, now, again, all]) {
    expect(await stream.next()).toMatchObject({ event: 'end', data: {} });
    expect(await stream.next()).toBeNull();
  }
  const past = await follow(platform, `${path}?tail=1000`);
  expect(await ids(past, 5)).toEqual(['9', '10', '20', '30', '40']);
  expect(await past.next()).toMatchObject({ event: 'end' });
  expect((await follow(platform, '/sandboxes/inosuchsandbox/logs/stream')).status).toBe(404);
  expect((await follow(platform, path, { 'last-event-id': '-1' })).status).toBe(400);
});

test('a stream of what matches searches each entry once', async () => {
  await using platform = await Platform.start();
  const { sandboxID } = await platform.createSandbox();
  const { node } = platform;
  node.logEntries = [entry(10), entry(20), entry(30)];
  const stream = await follow(platform, `/sandboxes/${sandboxID}/logs/stream?after=0&search=4`);
  expect(await ids(stream, 1)).toEqual(['0']);
  const readsOf = (isSearch: boolean) => node.logReads.filter(({ search }) => (search === '4') === isSearch);
  await until(() => readsOf(false).length >= 3);
  expect(readsOf(true).map(({ fromMs }) => fromMs)).toEqual([1]);
  node.logEntries.push(entry(40), entry(50));
  expect(await ids(stream, 1)).toEqual(['40']);
  node.logEntries.push(entry(64));
  expect(await ids(stream, 1)).toEqual(['64']);
  expect(readsOf(true).map(({ fromMs }) => fromMs)).toEqual([1, 31, 51]);
  stream.stop();
});

test('a team follows so many streams at a time, and each that ends makes room', async () => {
  await using platform = await Platform.start();
  const all = Array.from({ length: streamsPerTeamMax }, () => follow(platform, '/events/stream'));
  const open = await Promise.all(all);
  expect(new Set(open.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await follow(platform, '/events/stream')).status).toBe(429);
  const other = await platform.otherTeam();
  expect((await follow(platform, '/events/stream?seconds=0', { 'x-api-key': other.key })).status).toBe(200);
  for (const stream of open) stream.stop();
  for (;;) {
    const stream = await follow(platform, '/events/stream?seconds=0');
    if (stream.status === 200) break;
    await Bun.sleep(50);
  }
});

test('who asks for it is told which sandboxes are between two states, and who comes back how it stands', async () => {
  await using platform = await Platform.start();
  const { sandboxID } = await platform.createSandbox();
  const path = '/events/stream?transitions=true';
  const stream = await follow(platform, path);
  expect(await stream.next()).toMatchObject({ event: 'ready' });
  expect(await stream.next()).toMatchObject({ event: 'transitions', data: [] });

  const gate = Promise.withResolvers<void>();
  platform.node.before = async call => (call === 'pause' ? gate.promise : undefined);
  const paused = platform.call('POST', `/sandboxes/${sandboxID}/pause`);
  const underWay = { event: 'transitions', id: undefined, data: [{ sandboxID, transition: 'pausing' }] };
  expect(await stream.next()).toEqual(underWay);
  const another = await follow(platform, path);
  expect(await another.next()).toMatchObject({ event: 'ready' });
  expect(await another.next()).toEqual(underWay);
  const plain = await follow(platform, '/events/stream');
  expect(await plain.next()).toMatchObject({ event: 'ready' });

  gate.resolve();
  expect((await paused).status).toBe(204);
  const told = [await stream.next(), await stream.next()];
  expect(told).toContainEqual({ event: 'transitions', id: undefined, data: [] });
  expect(told).toContainEqual(expect.objectContaining({ event: 'message' }));
  expect(await plain.next()).toMatchObject({ event: 'message' });
});
