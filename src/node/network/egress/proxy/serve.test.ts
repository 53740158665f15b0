import { afterEach, expect, jest, test } from 'bun:test';
import { AtollError } from '../../../../base/error.ts';
import { type EgressPolicy, parseAddress } from '../../../../protocol/network/network.ts';
import { slotOf } from '../../../layout.ts';
import type { Denial, PlatformInside } from '../proxies/messages.ts';
import { channelHandlers, SocketChannel } from './channel.ts';
import { connect, type dial } from './dial.ts';
import { type Carried, createProxiedSandboxes } from './sandboxes.ts';
import { serve, type ServeContext } from './serve.ts';
import { createDescriptors } from './shares/descriptors.ts';
import { createTurns } from './shares/turns.ts';

const open: EgressPolicy = { internetAccess: true };
const byName: EgressPolicy = { internetAccess: false, allowOut: ['a.test', '203.0.113.10'] };
const destination = '203.0.113.5';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  jest.useRealTimers();
  for (const step of undo.splice(0).reverse()) await step();
});

/** An object whose changes a test can wait for. */
function watched<T extends object>(state: T) {
  let changed = () => {};
  const change = (how: (state: T) => void) => {
    how(state);
    changed();
  };
  const until = async (holds: (state: T) => boolean) => {
    while (!holds(state)) await new Promise<void>(resolve => (changed = resolve));
  };
  return { state, change, until };
}

/** A server on the loopback that records what it receives and answers with `answer`. */
function server(answer = '') {
  const it = watched({ text: '', from: [] as string[], gone: 0, sockets: [] as Bun.Socket[] });
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    allowHalfOpen: true,
    socket: {
      open: socket =>
        it.change(state => {
          state.from.push(socket.remoteAddress);
          state.sockets.push(socket);
        }),
      data(socket, bytes) {
        it.change(state => (state.text += bytes.toString('latin1')));
        socket.write(answer);
      },
      end: () => it.change(state => state.gone++),
      close: () => it.change(state => state.gone++),
      error() {},
    },
  });
  undo.push(() => listener.stop(true));
  return { ...it, port: listener.port };
}

/** The platform, with a server of the test as its edge. */
const platformAt = (port: number): PlatformInside => ({
  ...{ domain: 'box.test', insideAddress: '198.19.1.1', httpPorts: [8080], tlsPorts: [8443] },
  edge: { address: '127.0.0.1', port },
});

type Reach = typeof dial;
type SceneOptions = {
  policy?: EgressPolicy;
  /** The loopback port that every reached address leads to. */
  to?: number;
  reach?: Reach;
  platform?: PlatformInside;
  descriptors?: number;
};

/** A sandbox whose connections are served. */
function scene({ policy = open, to = 0, platform, descriptors = 1000, ...options }: SceneOptions = {}) {
  const sandboxes = createProxiedSandboxes(
    0,
    createTurns(() => {}),
    () => {},
  );
  sandboxes.set(1, policy);
  const sandbox = sandboxes.at(slotOf(0, 1).address)!;
  const denied = watched([] as Denial[]);
  sandbox.deny = denial => denied.change(list => void list.push(denial));
  const reached: { host: string; port: number; mayReach: boolean[]; localAddress: string }[] = [];
  const it = watched({ reached });
  const reach: Reach = async (target, given) => {
    const mayReach = [destination, '203.0.113.10'].map(address => given.mayReach(parseAddress(address)!));
    it.change(() => reached.push({ ...target, mayReach, localAddress: given.localAddress }));
    if (options.reach) return options.reach(target, given);
    const channel = await connect('127.0.0.1', to, { signal: given.signal, account: given.account });
    return { channel, address: target.host === 'a.test' ? '203.0.113.77' : target.host };
  };
  const context: ServeContext = {
    resolver: undefined as never,
    descriptors: createDescriptors(descriptors),
    certificateFor: () => undefined as never,
    roots: '',
    opensAllowedNames: false,
    platform,
  };
  /** A client in the sandbox that believes it is connected to this address and port. */
  const client = async (port: number, address = destination) => {
    const heard = watched({ text: '', isClosed: false });
    const served = Promise.withResolvers<SocketChannel>();
    const listener = Bun.listen<SocketChannel>({
      hostname: '127.0.0.1',
      port: 0,
      allowHalfOpen: true,
      socket: {
        ...channelHandlers,
        open(socket) {
          const channel = (socket.data = new SocketChannel(socket, sandbox.share));
          void serve(context, sandbox, channel, { address, octets: parseAddress(address)!, port }, reach);
          served.resolve(channel);
        },
      },
    });
    undo.push(() => listener.stop(true));
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: listener.port,
      allowHalfOpen: true,
      socket: {
        data: (_, bytes) => heard.change(state => (state.text += bytes.toString('latin1'))),
        close: () => heard.change(state => (state.isClosed = true)),
        error() {},
      },
    });
    undo.push(() => socket.terminate());
    return { ...heard, socket };
  };
  return { sandbox, sandboxes, denied, reached, untilReached: it.until, client };
}

const request = (host: string, ...lines: string[]) =>
  ['GET / HTTP/1.1', `Host: ${host}`, ...lines, '', ''].join('\r\n');
const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

test('what the policy lets pass goes unchanged to the address that the client chose', async () => {
  const far = server('answer');
  // The platform's ports apply to no other host.
  const { client, reached, sandbox, denied } = scene({ to: far.port, platform: platformAt(1) });
  const { socket, until } = await client(8080);
  socket.write('hello');
  await until(({ text }) => text === 'answer');
  expect(far.state.text).toBe('hello');
  expect(reached).toEqual([
    { host: destination, port: 8080, mayReach: [true, true], localAddress: slotOf(0, 1).proxyAddress },
  ]);
  expect([sandbox.connections.size, sandbox.held]).toEqual([1, 2]);
  socket.shutdown();
  await far.until(({ gone }) => gone > 0);
  far.state.sockets[0]?.end();
  await until(({ isClosed }) => isClosed);
  while (sandbox.held > 0) await Bun.sleep(1);
  expect([sandbox.connections.size, denied.state]).toEqual([0, []]);
});

test('a host that no rule allows is refused by the name that was asked for', async () => {
  const { client, reached, denied } = scene({ policy: byName });
  const { socket, until } = await client(80);
  socket.write(request('b.test'));
  await until(({ isClosed }) => isClosed);
  expect([reached, denied.state]).toEqual([[], [{ host: 'b.test', port: 80, rule: 'allow_internet_access false' }]]);
});

test('a host that a rule allows is looked up, and its requests leave with the headers of the rule', async () => {
  const far = server(ok);
  const policy = { ...byName, headerRules: { 'a.test': { 'X-Key': 'k' } } };
  const { client, reached, denied } = scene({ policy, to: far.port });
  const { socket, until } = await client(80);
  socket.write(request('a.test'));
  await until(({ text }) => text === ok);
  expect(far.state.text).toBe(request('a.test', 'X-Key: k'));
  expect(reached).toMatchObject([{ host: 'a.test', port: 80, mayReach: [true, true] }]);
  socket.write(request('b.test'));
  await until(({ isClosed }) => isClosed);
  expect(denied.state).toEqual([{ host: 'a.test', port: 80, rule: 'a request for another host, b.test' }]);
});

test('a host that no rule names, but whose headers one sets, is reached as far as its address is allowed', async () => {
  const far = server(ok);
  const policy = { internetAccess: false, allowOut: ['203.0.113.10'], headerRules: { 'a.test': { 'X-Key': 'k' } } };
  const { client, reached, sandboxes } = scene({ policy, to: far.port });
  const { socket, until } = await client(80, '203.0.113.10');
  socket.write(request('a.test'));
  await until(({ text }) => text === ok);
  expect(reached).toMatchObject([{ host: 'a.test', mayReach: [false, true] }]);
  // The change applies at this moment.
  sandboxes.set(1, { ...policy, allowOut: ['203.0.113.77'], headerRules: { 'a.test': { 'X-Key': 'new' } } });
  socket.write(request('a.test'));
  await far.until(({ text }) => text.endsWith(request('a.test', 'X-Key: new')));
});

test('the connections of a sandbox are limited, and so is its share of all', async () => {
  const { client, sandbox, denied } = scene({ reach: () => new Promise(() => {}) });
  const carried: Carried = { mayStay: () => true, cut() {} };
  for (let number = 0; number < 1023; number++) sandbox.connections.add({ ...carried });
  await client(8080);
  expect([sandbox.connections.size, denied.state]).toEqual([1024, []]);
  const refused = await client(8080);
  await refused.until(({ isClosed }) => isClosed);
  expect(denied.state).toEqual([{ host: destination, port: 8080, rule: 'at most 1024 connections at a time' }]);
  const few = scene({ descriptors: 1, reach: () => new Promise(() => {}) });
  await few.client(8080);
  const second = await few.client(8080);
  await second.until(({ isClosed }) => isClosed);
  expect(few.denied.state).toEqual([{ host: destination, port: 8080, rule: 'its share of all connections' }]);
});

test('a failure to reach something is no denial, unless the policy caused it', async () => {
  for (const code of ['unavailable', 'forbidden'] as const) {
    const reach = () => Promise.reject(new AtollError(code, 'no way'));
    const { client, denied } = scene({ reach });
    const { until } = await client(8080);
    await until(({ isClosed }) => isClosed);
    expect(denied.state).toEqual(code === 'forbidden' ? [{ host: destination, port: 8080, rule: 'no way' }] : []);
    const relayed = scene({ policy: byName, reach });
    const { socket, until: untilClosed } = await relayed.client(80);
    socket.write(request('a.test'));
    await untilClosed(({ isClosed }) => isClosed);
    expect(relayed.denied.state).toMatchObject(code === 'forbidden' ? [{ host: 'a.test', rule: 'no way' }] : []);
  }
});

test('when a client goes, the connection that is being made for it is given up', async () => {
  const signal = Promise.withResolvers<AbortSignal>();
  const far = server();
  const late = Promise.withResolvers<void>();
  const { client, sandbox } = scene({
    async reach(target, given) {
      signal.resolve(given.signal);
      await late.promise;
      const unstoppable = new AbortController().signal;
      const channel = await connect('127.0.0.1', far.port, { signal: unstoppable, account: given.account });
      return { channel, address: target.host };
    },
  });
  const { socket } = await client(8080);
  const { reason } = await signal.promise.then(async given => {
    socket.terminate();
    await new Promise(resolve => given.addEventListener('abort', resolve));
    return given;
  });
  expect(reason).toMatchObject({ code: 'canceled' });
  expect(sandbox.connections.size).toBe(0);
  late.resolve();
  await far.until(({ gone }) => gone > 0);
  while (sandbox.held > 0) await Bun.sleep(1);
});

test('a client that says nothing and ends is left', async () => {
  const { client, reached, denied } = scene();
  const { socket, until } = await client(80);
  socket.shutdown();
  await until(({ isClosed }) => isClosed);
  expect([reached, denied.state]).toEqual([[], []]);
});

test('a silent client gets a second if its address lets it pass, and ten if not', async () => {
  jest.useFakeTimers();
  const allowed = scene({ reach: () => new Promise(() => {}) });
  await allowed.client(80);
  jest.advanceTimersByTime(999);
  expect(allowed.reached).toEqual([]);
  jest.advanceTimersByTime(1);
  await allowed.untilReached(({ reached }) => reached.length === 1);
  const closed = scene({ policy: byName });
  const { until } = await closed.client(80);
  jest.advanceTimersByTime(9_999);
  expect(closed.denied.state).toEqual([]);
  jest.advanceTimersByTime(1);
  await until(({ isClosed }) => isClosed);
  expect(closed.denied.state).toMatchObject([{ host: destination }]);
});

test('a SOCKS5 server is told the name that was asked for, unless addresses are denied', async () => {
  const socks = { ...open, egressProxy: { address: 'socks.test:1080' } };
  for (const [policy, host] of [
    [socks, 'c.test'],
    [{ ...socks, denyOut: ['203.0.113.99'] }, destination],
    [{ ...socks, internetAccess: false, allowOut: [destination] }, destination],
    [open, destination],
  ] as const) {
    const { client, reached, untilReached } = scene({
      policy: policy as EgressPolicy,
      reach: () => new Promise(() => {}),
    });
    const { socket } = await client(80);
    socket.write(request('c.test'));
    await untilReached(() => reached.length === 1);
    expect(reached[0]?.host).toBe(host);
  }
});

/** What happens to a connection when the policy changes. */
async function underAnother(before: EgressPolicy, after: EgressPolicy, host?: string) {
  const far = server(ok);
  const { client, sandboxes } = scene({ policy: before, to: far.port });
  const { socket, until, state } = await client(host === undefined ? 8080 : 80);
  const ask = () => socket.write(host === undefined ? 'hello' : request(host));
  ask();
  await until(({ text }) => text === ok);
  sandboxes.set(1, after);
  ask();
  await until(({ text, isClosed }) => isClosed || text === ok + ok);
  if (state.isClosed) await far.until(({ gone }) => gone > 0);
  return state.isClosed ? 'cut' : 'stays';
}

test('a policy that changes cuts what it denies, and nothing else', async () => {
  const denying = { ...open, denyOut: [destination] };
  const named = { ...byName, allowOut: ['a.test'] };
  expect(await underAnother(open, byName)).toBe('cut');
  expect(await underAnother(open, { ...open, denyOut: ['203.0.113.99'] })).toBe('stays');
  expect(await underAnother(open, denying)).toBe('cut');
  // A connection that passed unchanged was not allowed by the name that a rule now allows.
  expect(await underAnother(open, named, 'a.test')).toBe('cut');
  expect(await underAnother(named, { ...named, denyOut: ['203.0.113.99'] }, 'a.test')).toBe('stays');
  expect(await underAnother(named, { internetAccess: false }, 'a.test')).toBe('cut');
  // It stays by the address at which its name was found.
  expect(await underAnother(named, { internetAccess: false, allowOut: ['203.0.113.77'] }, 'a.test')).toBe('stays');
});

test('an undecided connection is decided under the new policy, and an unconnected one again', async () => {
  const far = server();
  const { client, sandboxes, reached, untilReached } = scene({ policy: byName, to: far.port });
  const { socket } = await client(80);
  sandboxes.set(1, open);
  socket.write(request('c.test'));
  await untilReached(() => reached.length === 1);
  const connecting = scene({ reach: () => new Promise(() => {}) });
  const { state } = await connecting.client(8080);
  await connecting.untilReached(() => connecting.reached.length === 1);
  connecting.sandboxes.set(1, { ...open, denyOut: ['203.0.113.99'] });
  await Bun.sleep(5);
  expect(state.isClosed).toBe(false);
  connecting.sandboxes.set(1, byName);
  while (!state.isClosed) await Bun.sleep(1);
});

test('URLs of sandboxes lead to the edge, from an address of the sandbox’s own', async () => {
  const edge = server(ok);
  const { client, reached, denied, sandboxes } = scene({ policy: open, platform: platformAt(edge.port) });
  const { socket, until, state } = await client(8080, '198.19.1.1');
  socket.write(request('80-abc.box.test:8080', 'X-Forwarded-For: 1.2.3.4'));
  await until(({ text }) => text === ok);
  expect(edge.state.text).toBe(request('80-abc.box.test:8080'));
  expect([edge.state.from, reached]).toEqual([[slotOf(0, 1).proxyAddress.replace('198', '127')], []]);
  sandboxes.set(1, { ...open, denyOut: ['203.0.113.99'] });
  await Bun.sleep(5);
  expect(state.isClosed).toBe(false);
  sandboxes.set(1, { internetAccess: false });
  while (!state.isClosed) await Bun.sleep(1);
  await edge.until(({ gone }) => gone > 0);
  const api = await client(8080, '198.19.1.1');
  api.socket.write(request('api.box.test:8080'));
  await api.until(({ isClosed }) => isClosed);
  expect(denied.state).toMatchObject([{ rule: 'only URLs of sandboxes are reached here' }]);
});
