import { expect, test } from 'bun:test';
import { Share } from '../../base/concurrency/share.ts';
import type { Client } from '../connection/client.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { Splice } from './splice.ts';

/** One end of a splice: what was done with it, and what was sent to it. */
class FakeEnd {
  readonly done: string[] = [];
  sent = '';
  hasRoom = true;
  readonly sendBuffer = {
    idle: true,
    write: (bytes: Uint8Array, from: number, to: number) => {
      this.sent += Buffer.from(bytes.subarray(from, to)).toString();
      return this.hasRoom;
    },
    finish: () => void this.done.push('finish'),
  };
  pause = () => void this.done.push('pause');
  resume = () => void this.done.push('resume');
  close = () => void this.done.push('close');
  terminate = () => void this.done.push('terminate');
}

class FakeClient extends FakeEnd {
  input: Buffer | null = null;
  inputAt = 0;
  ended = false;
  deadlineMs = 0;
  context = { clock: { nowMs: 1000 }, limits: { streamIdleTimeoutMs: 500, lingerTimeoutMs: 50 } };
  use = (position: number) => void this.done.push(`use ${position}`);
  giveBack = (share: Share) => {
    this.done.push('giveBack');
    share.give();
  };
}

class FakeUpstream extends FakeEnd {
  user: unknown = null;
  closed = false;
}

function spliced() {
  const place = new Share('sandbox', 9, null);
  place.take();
  const [client, upstream] = [new FakeClient(), new FakeUpstream()];
  const splice = new Splice(client as unknown as Client, upstream as unknown as Upstream, place);
  upstream.user = splice;
  /** What has become of it. */
  const now = () => ({ client: client.done, upstream: upstream.done, taken: place.taken, user: upstream.user });
  return { client, upstream, splice, now };
}

test('bytes pass both ways, and keep the connection alive', () => {
  const { client, upstream, splice } = spliced();
  client.input = Buffer.from('used, new');
  client.inputAt = 6;
  expect(splice.clientInput()).toBe(false);
  expect([upstream.sent, client.done, client.deadlineMs]).toEqual(['new', ['use 9'], 1500]);
  client.context.clock.nowMs = 2000;
  splice.upstreamData(Buffer.from('answer'));
  expect([client.sent, upstream.done, client.deadlineMs]).toEqual(['answer', [], 2500]);
});

test('a side that takes no more makes the other one wait', () => {
  const { client, upstream, splice } = spliced();
  upstream.hasRoom = client.hasRoom = false;
  client.input = Buffer.from('x');
  splice.clientInput();
  splice.upstreamData(Buffer.from('y'));
  expect([client.done, upstream.done]).toEqual([['use 1', 'pause'], ['pause']]);
  splice.upstreamDrained();
  splice.clientDrained();
  expect([client.done.at(-1), upstream.done.at(-1)]).toEqual(['resume', 'resume']);
});

test('a closed direction stays a closed direction, and the other one goes on', () => {
  const { upstream, splice, now } = spliced();
  splice.clientEnded();
  splice.clientGone();
  expect(now()).toEqual({ client: [], upstream: ['finish'], taken: 1, user: splice });
  splice.upstreamEnded();
  expect(now()).toEqual({ client: ['finish'], upstream: ['finish'], taken: 1, user: splice });
  expect(upstream.user).toBe(splice);
});

test('a server that closes after either side has ended closes the client in order', () => {
  for (const endFirst of [
    ({ splice }: ReturnType<typeof spliced>) => splice.upstreamEnded(),
    ({ client }: ReturnType<typeof spliced>) => (client.ended = true),
  ]) {
    const scene = spliced();
    endFirst(scene);
    scene.splice.upstreamClosed(undefined);
    expect(scene.client.done.slice(-2)).toEqual(['giveBack', 'close']);
    expect(scene.now()).toMatchObject({ taken: 0, user: null });
  }
});

test('a server that breaks off breaks off the client', () => {
  for (const [error, hasEnded] of [
    [new Error('reset'), true],
    [undefined, false],
  ] as const) {
    const { client, splice, now } = spliced();
    client.ended = hasEnded;
    splice.upstreamClosed(error);
    expect(now()).toEqual({ client: ['terminate'], upstream: [], taken: 0, user: null });
  }
});

test('a client that closes after either side has ended closes the server in order', () => {
  for (const isServers of [true, false]) {
    const { client, splice, now } = spliced();
    if (isServers) splice.upstreamEnded();
    else client.ended = true;
    splice.clientClosed(undefined);
    expect(now()).toMatchObject({ upstream: ['close'], taken: 0, user: null });
  }
});

test('a client that breaks off breaks off the server', () => {
  for (const [error, hasEnded] of [
    [new Error('reset'), true],
    [undefined, false],
  ] as const) {
    const { client, splice, now } = spliced();
    client.ended = hasEnded;
    splice.clientClosed(error);
    expect(now()).toEqual({ client: [], upstream: ['terminate'], taken: 0, user: null });
  }
});

test('what is cut is broken off for the client', () => {
  const { splice, now } = spliced();
  splice.cut();
  expect(now()).toEqual({ client: ['terminate'], upstream: [], taken: 0, user: null });
});

test('a finished splice does not end twice, and passes nothing on', () => {
  const { client, upstream, splice, now } = spliced();
  splice.cut();
  splice.upstreamClosed(undefined);
  splice.clientClosed(undefined);
  splice.cut();
  client.input = Buffer.from('late');
  expect(splice.clientInput()).toBe(false);
  client.input = null;
  expect(splice.clientInput()).toBe(false);
  expect(now()).toEqual({ client: ['terminate'], upstream: [], taken: 0, user: null });
  expect(upstream.sent).toBe('');
});
