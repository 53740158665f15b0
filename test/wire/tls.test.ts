import { expect, test } from 'bun:test';
import { newKey } from '../../src/base/crypto/certificate.ts';
import { controlName, nodeName } from '../../src/base/crypto/cluster-names.ts';
import { silentLog } from '../../src/base/telemetry/log.ts';
import { closeFile, streamPair } from '../../src/wire/files.ts';
import { socketSource } from '../../src/wire/pump.ts';
import { machineAt, machineTable, serveMachine } from '../../src/wire/node-service.ts';
import type { ControlIdentity, MachineService } from '../../src/protocol/cluster.ts';
import { listenTls } from '../../src/wire/tls/listen-tls.ts';
import { Backlog } from '../../src/wire/tls/backlog.ts';
import { FarEnds } from '../../src/wire/tls/far-ends.ts';
import { openTls } from '../../src/wire/tls/connect-tls.ts';
import { methodsOf } from '../../src/protocol/wire/method.ts';
import { callsOn } from '../../src/wire/call.ts';
import { checkedMethods } from '../../src/wire/checked.ts';
import { newAuthority, openFiles, signed } from './support/cluster.ts';
import { sampleOf } from './support/samples.ts';

// What a node of a cluster serves over TLS: whom it admits, whom control trusts, and connections that are carried.

const nodeId = '11111111-2222-4333-8444-555555555555';
const all = methodsOf(machineTable);
const methods = checkedMethods(machineTable);

/** A node that records the calls that it got. */
function countingNode(authority = newAuthority(), log = silentLog) {
  const called: string[] = [];
  const implementation: Record<string, Record<string, unknown>> = {};
  for (const [name, { result }] of all) {
    const path = name.split('.');
    const last = path.pop() ?? '';
    let owner = implementation as Record<string, unknown>;
    for (const part of path) owner = (owner[part] ??= {}) as Record<string, unknown>;
    owner[last] = async () => (called.push(name), sampleOf(result));
  }
  const identity = authority.node(nodeId);
  const served = listenTls({ hostname: '127.0.0.1', port: 0, identity }, { methods, implementation, log });
  const place = { nodeId, host: '127.0.0.1', port: served.port, certificates: [identity.digest] };
  return { authority, identity, called, place, served };
}

const rejected: Record<string, (authority: ReturnType<typeof newAuthority>) => ControlIdentity> = {
  'one of another authority': authority => ({ ...newAuthority().control('api'), authority: authority.own.certificate }),
  'one that has run out': ({ own }) => ({
    ...signed(own, [controlName('api')], 'client', -1),
    authority: own.certificate,
  }),
  "this node's own": authority => authority.node(nodeId),
  "another node's": authority => authority.node('22222222-2222-4333-8444-555555555555'),
  'a revoked one, of a machine that was forgotten': authority => {
    // The certificate that control issued before it issued another one to another machine of this ID.
    const forgotten = authority.node(nodeId);
    authority.node(nodeId);
    return forgotten;
  },
  'one for clients with the name of a node': ({ own }) => ({
    ...signed(own, [nodeName(nodeId)], 'client'),
    authority: own.certificate,
  }),
  "one for servers with control's name": ({ own }) => ({
    ...signed(own, [controlName('api')], 'server'),
    authority: own.certificate,
  }),
  'one with two names': ({ own }) => ({
    ...signed(own, [controlName('api'), 'other.example'], 'client'),
    authority: own.certificate,
  }),
  none: ({ own }) => ({ authority: own.certificate }) as ControlIdentity,
};

for (const [what, identityOf] of Object.entries(rejected)) {
  test(`a node carries out no method for who shows ${what}`, async () => {
    const { authority, called, place, served } = countingNode();
    let tried = 0;
    for (const [name, described] of all) {
      const checked = methods.get(name);
      if (!checked) throw new Error(name);
      const channel = await openTls(place, identityOf(authority), () => {});
      tried++;
      if (!channel) continue;
      // In TLS 1.3, the client is done before the server has looked at its certificate.
      const outcome = callsOn(channel, 'node', () => {}).call(checked, described.params.map(sampleOf));
      expect(await outcome.catch((error: { detail?: string }) => error.detail)).toBe('part_lost');
    }
    expect(tried).toBe(all.length);
    expect(tried).toBeGreaterThan(50);
    expect(called).toEqual([]);
    served.stop();
  });
}

test('each process of control may call what the table gives it, and nothing else', async () => {
  const { authority, called, place, served } = countingNode();
  let seen = 0;
  for (const role of ['api', 'edge'] as const) {
    const channel = await openTls(place, authority.control(role), () => {});
    if (!channel) throw new Error('it did not connect');
    const calls = callsOn(channel, 'node', () => {});
    for (const [name, described] of all) {
      if (described.passes) continue;
      const checked = methods.get(name);
      if (!checked) throw new Error(name);
      called.length = 0;
      const outcome = await calls.call(checked, described.params.map(sampleOf)).then(
        () => 'done',
        (error: { code: string }) => error.code,
      );
      seen++;
      if (described.callers.includes(role)) expect([name, outcome, called]).toEqual([name, 'done', [name]]);
      else expect([name, outcome, called]).toEqual([name, 'forbidden', []]);
    }
    channel.close();
  }
  expect(seen).toBeGreaterThan(90);
  served.stop();
});

test('control speaks with nobody but the node, by the certificate that it gave it last', async () => {
  const authority = newAuthority();
  const control = authority.control('api');
  const wrong = {
    "another node's": authority.node('22222222-2222-4333-8444-555555555555'),
    'an earlier one of the node': authority.node(nodeId),
    'one of another authority': newAuthority().node(nodeId),
    "one of control's": { ...authority.control('api') },
  };
  const current = authority.node(nodeId);
  for (const [what, identity] of Object.entries(wrong)) {
    const listening = listenTls(
      { hostname: '127.0.0.1', port: 0, identity: { ...identity, authority: authority.own.certificate } },
      { methods, implementation: {}, log: silentLog },
    );
    const reasons: string[] = [];
    const place = { nodeId, host: '127.0.0.1', port: listening.port, certificates: [current.digest] };
    expect([what, await openTls(place, control, reason => reasons.push(reason))]).toEqual([what, undefined]);
    expect(reasons).toHaveLength(1);
    listening.stop();
  }
});

test('strangers who only connect keep no process of control away', async () => {
  const { authority, place, served } = countingNode();
  const ended: number[] = [];
  const strangers: Bun.Socket<undefined>[] = [];
  for (let number = 0; number < 300; number++)
    strangers.push(
      await Bun.connect({
        hostname: place.host,
        port: place.port,
        socket: { data() {}, error() {}, close: () => void ended.push(number) },
      }),
    );
  const channel = await openTls(place, authority.control('api'), () => {});
  expect(channel).toBeDefined();
  // Those that have waited longest gave way.
  expect(ended.length).toBeGreaterThan(0);
  expect(Math.max(...ended)).toBeLessThan(200);
  channel?.close();
  for (const stranger of strangers) stranger.terminate();
  served.stop();
});

test('strangers who come one after the other do not fill the log', async () => {
  const told: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void told.push(message) };
  const { authority, place, served } = countingNode(newAuthority(), log);
  const stranger = { ...newAuthority().control('api'), authority: authority.own.certificate };
  for (let left = 5; left > 0; left--) {
    const channel = await openTls(place, stranger, () => {});
    await new Promise<void>(closed => (channel ? channel.listen({ message() {}, closed }) : closed()));
  }
  expect(told).toEqual(['a stranger connected to the port of this node']);
  served.stop();
});

test('a node goes on with a new certificate at the same port', async () => {
  const { authority, identity, place, served } = countingNode();
  const next = authority.node(nodeId);
  served.exchange(next);
  const control = authority.control('api');
  expect(await openTls(place, control, () => {})).toBeUndefined();
  const channel = await openTls({ ...place, certificates: [identity.digest, next.digest] }, control, () => {});
  expect(channel).toBeDefined();
  channel?.close();
  served.stop();
});

test('a node whose new certificate is of another key goes on with the one that it has', async () => {
  const { authority, place, served } = countingNode();
  expect(() => served.exchange({ ...authority.node(nodeId), key: newKey().key })).toThrow();
  const channel = await openTls(place, authority.control('api'), () => {});
  expect(channel).toBeDefined();
  channel?.close();
  served.stop();
});

/** A node whose `dial` answers one end of a pair and hands out the other, and control's edge. */
function dialing(accept: (fd: number) => void, farEnds?: FarEnds) {
  const authority = newAuthority();
  const identity = authority.node(nodeId);
  const dial = async () => {
    const [own, given] = streamPair();
    accept(own);
    return given;
  };
  const service = { node: { dial } } as unknown as MachineService;
  const served = serveMachine(service, { hostname: '127.0.0.1', port: 0, identity }, silentLog);
  const place = { nodeId, host: '127.0.0.1', port: served.port, certificates: [identity.digest] };
  const machine = machineAt(nodeId, async () => ({ place, identity: authority.control('edge') }), silentLog, farEnds);
  return { machine, served };
}

type Handlers = Partial<Pick<Bun.SocketHandler<undefined>, 'data' | 'drain' | 'end' | 'close' | 'open'>>;

/** A connected descriptor, used as in the edge. */
async function opened(fd: number, handlers: Handlers): Promise<Bun.Socket<undefined>> {
  const options = { fd, allowHalfOpen: true, socket: { data() {}, error() {}, ...handlers } };
  return Bun.connect(options as unknown as Bun.UnixSocketOptions<undefined>);
}

/** Sends everything back, in order, and ends when the other side does. */
function echo(fd: number): void {
  const waiting: Buffer[] = [];
  let isEnded = false;
  const flush = (socket: Bun.Socket<undefined>) => {
    for (let first = waiting[0]; first; first = waiting[0]) {
      const written = socket.write(first);
      if (written < first.length) return void (waiting[0] = first.subarray(Math.max(written, 0)));
      waiting.shift();
    }
    if (isEnded) socket.end();
  };
  void opened(fd, {
    data: (socket, bytes) => (waiting.push(Buffer.from(bytes)), flush(socket)),
    drain: flush,
    end: socket => ((isEnded = true), flush(socket)),
  });
}

test('bytes go both ways through a carried connection as they were, each direction to its own end', async () => {
  const { machine, served } = dialing(echo);
  await machine.node.dial('a', 80).then(closeFile);
  const before = openFiles();
  const content = Buffer.concat(Array.from({ length: 64 }, (_, number) => Buffer.alloc(100_003, number)));
  const ended = Promise.withResolvers<void>();
  const got: Buffer[] = [];
  let sent = 0;
  const send = (socket: Bun.Socket<undefined>) => {
    if (sent === content.length) return;
    sent += Math.max(socket.write(content.subarray(sent)), 0);
    if (sent === content.length) socket.shutdown();
  };
  await opened(await machine.node.dial('a', 80), {
    open: send,
    drain: send,
    data: (_, bytes) => void got.push(Buffer.from(bytes)),
    close: () => ended.resolve(),
  });
  await ended.promise;
  expect(Buffer.concat(got).equals(content)).toBe(true);
  while (openFiles() > before) await Bun.sleep(5);
  machine.close();
  served.stop();
});

test('all that was sent before a connection was closed arrives, however slowly it is read', async () => {
  const content = Buffer.concat(Array.from({ length: 32 }, (_, number) => Buffer.alloc(100_003, number)));
  const { machine, served } = dialing(fd => {
    let sent = 0;
    const send = (socket: Bun.Socket<undefined>) => {
      sent += Math.max(socket.write(content.subarray(sent)), 0);
      if (sent === content.length) socket.end();
    };
    void opened(fd, { open: send, drain: send });
  });
  const got: Buffer[] = [];
  for await (const bytes of socketSource(await machine.node.dial('a', 80))) {
    got.push(Buffer.from(bytes));
    await Bun.sleep(0);
  }
  expect(Buffer.concat(got).equals(content)).toBe(true);
  machine.close();
  served.stop();
});

test('who does not read holds back one connection and not the others', async () => {
  const fill = (socket: Bun.Socket<undefined>) => {
    while (socket.write(Buffer.alloc(65_536)) > 0);
  };
  const { machine, served } = dialing(fd => void opened(fd, { open: fill, drain: fill }));
  const stuck = await machine.node.dial('a', 80);
  for (let round = 0; round < 3; round++) {
    const read = Promise.withResolvers<void>();
    const socket = await opened(await machine.node.dial('a', 80), { data: () => read.resolve() });
    await read.promise;
    socket.terminate();
  }
  closeFile(stuck);
  machine.close();
  served.stop();
});

test('what waits for sandboxes that do not read counts together, whoever of control has sent it', async () => {
  const waiting = new Set<unknown>();
  class WatchedBacklog extends Backlog {
    override add(...[behind, bytes]: Parameters<Backlog['add']>): void {
      waiting.add(behind);
      super.add(behind, bytes);
    }
  }
  const authority = newAuthority();
  const identity = authority.node(nodeId);
  const deaf: number[] = [];
  const dial = async () => {
    const [own, given] = streamPair();
    deaf.push(own);
    return given;
  };
  const served = listenTls(
    { hostname: '127.0.0.1', port: 0, identity },
    { methods, implementation: { node: { dial } }, log: silentLog },
    new WatchedBacklog(),
  );
  const place = { nodeId, host: '127.0.0.1', port: served.port, certificates: [identity.digest] };
  const machines = [1, 2].map(() =>
    machineAt(nodeId, async () => ({ place, identity: authority.control('edge') }), silentLog),
  );
  for (const machine of machines) {
    const fill = (socket: Bun.Socket<undefined>) => {
      while (socket.write(Buffer.alloc(65_536)) > 0);
    };
    await opened(await machine.node.dial('a', 80), { open: fill, drain: fill });
  }
  while (waiting.size < machines.length) await Bun.sleep(5);
  for (const machine of machines) machine.close();
  served.stop();
  for (const fd of deaf) closeFile(fd);
});

test('what a connection brings ends with the connection', async () => {
  const { machine, served } = dialing(echo);
  const closed = Promise.withResolvers<void>();
  await opened(await machine.node.dial('a', 80), { close: () => closed.resolve(), end: socket => void socket.end() });
  served.stop();
  await closed.promise;
  machine.close();
});

test('a carried connection that is broken off is known to have been, and one that ends is not', async () => {
  const farEnds = new FarEnds();
  const { machine, served } = dialing(
    fd =>
      void opened(fd, { data: (socket, bytes) => void (bytes.toString() === 'end' ? socket.end() : served.stop()) }),
    farEnds,
  );
  for (const [asked, wasReset] of [
    ['end', false],
    ['stop', true],
  ] as const) {
    const fd = await machine.node.dial('a', 80);
    const farEnd = farEnds.take(fd);
    expect(farEnds.take(fd)).toBeUndefined();
    const closed = Promise.withResolvers<void>();
    await opened(fd, {
      open: socket => void socket.write(asked),
      end: socket => void socket.end(),
      close: () => closed.resolve(),
    });
    await closed.promise;
    expect([asked, farEnd?.wasReset()]).toEqual([asked, wasReset]);
  }
  machine.close();
});
