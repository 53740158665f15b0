import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { defaultLimits } from '../../src/api/team/rules/limits.ts';
import { uploadsPerTeamMax } from '../../src/api/build/rules/uploads.ts';
import { silentLog } from '../../src/base/telemetry/log.ts';
import { limitsWithin } from '../../src/edge/limits.ts';
import { LogFollower } from '../../src/node/agent-client/follow-log.ts';
import type { LogSink } from '../../src/node/agent-client/log-intake.ts';
import { openNetworkNamespace } from '../../src/node/native/netns.ts';
import { endlessBuilder } from '../api/fake-builder.ts';
import { call, Platform, until } from '../api/platform.ts';

// One tenant takes all it can of what the edge and the API share; the test counts what another tenant and an operator
// still have.

setDefaultTimeout(120_000);

/** Open files that the process with the edge and an API may have; the edge is told of half of them. */
const openFiles = 1000;
const limits = limitsWithin(openFiles / 2);
type Report = { greedyOpen: number; modestApi: number; modestSandbox: number; localApi: number; localSandbox: number };

let edge: Bun.Subprocess<'ignore', 'pipe', 'inherit'>;
let port: string;
beforeAll(async () => {
  // In a separate network, where this test may use addresses other than the loopback's.
  const setUp = 'ip link set lo up && ip addr add 10.99.0.1/24 dev lo && ip addr add 10.99.0.2/24 dev lo';
  const own = `exec prlimit --nofile=${openFiles}:${openFiles} "$0" "$1" ${openFiles / 2}`;
  const program = join(import.meta.dir, 'support/shares/edge-process.ts');
  edge = Bun.spawn(['unshare', '--net', 'sh', '-c', `${setUp} && ${own}`, process.execPath, program], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  port = new TextDecoder().decode((await edge.stdout.getReader().read()).value).trim();
});
afterAll(async () => {
  edge.kill();
  await edge.exited;
});

async function crowd(how: string, count: number): Promise<Report> {
  const script = join(import.meta.dir, 'support/shares/crowd.mjs');
  const child = Bun.spawn(['nsenter', `--net=/proc/${edge.pid}/ns/net`, 'node', script, port, how, String(count)], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const report = JSON.parse(await new Response(child.stdout).text()) as Report;
  await child.exited;
  expect(readdirSync(`/proc/${edge.pid}/fd`).length).toBeLessThan(openFiles);
  return report;
}

for (const how of ['idle', 'silent', 'half a head']) {
  test(`edge connections: one address opens 1,200 that are ${how}, and everybody else is served`, async () => {
    const report = await crowd(how, 1200);
    expect(report.greedyOpen).toBeLessThanOrEqual(limits.connectionsPerAddressMax);
    expect(report.greedyOpen).toBeGreaterThan(limits.connectionsPerAddressMax / 2);
    expect(report).toMatchObject({ modestApi: 20, modestSandbox: 20, localApi: 20, localSandbox: 20 });
  });
}

test('edge connections: one address holds 1,200 bodies back from the API, and everybody else is answered by it', async () => {
  const report = await crowd('half a body', 1200);
  expect(report.greedyOpen).toBeLessThanOrEqual(limits.connectionsPerAddressMax);
  expect(report).toMatchObject({ modestApi: 20, modestSandbox: 20, localApi: 20, localSandbox: 20 });
});

test("descriptors: 1,200 requests hang in one team's twelve sandboxes, and API, operators and other teams go on", async () => {
  const report = await crowd('hanging', 1200);
  expect(report.greedyOpen).toBeGreaterThan(20);
  expect(report).toMatchObject({ modestApi: 20, modestSandbox: 20, localApi: 20, localSandbox: 20 });
});

test('uploads: one team holds all that it can, and another one uploads', async () => {
  await using platform = await Platform.start({ builder: endlessBuilder() });
  const other = await platform.otherTeam();
  const pathFor = async (key: string, hash: string) => {
    const made = await call(platform.socketPath, 'POST', '/v3/templates', { name: `u${hash}` }, { 'x-api-key': key });
    const { templateID } = made.body as { templateID: string };
    const slot = await call(
      platform.socketPath,
      'GET',
      `/templates/${templateID}/files/${hash.repeat(64)}`,
      undefined,
      { 'x-api-key': key },
    );
    const { pathname, search } = new URL((slot.body as { url: string }).url);
    return pathname + search;
  };
  const release = Promise.withResolvers<void>();
  const path = await pathFor(platform.key, 'a');
  const hanging = Array.from({ length: uploadsPerTeamMax }, () =>
    fetch(`http://api${path}`, {
      unix: platform.socketPath,
      method: 'PUT',
      body: new ReadableStream({
        async start(stream) {
          stream.enqueue(Buffer.from('some'));
          await release.promise;
          stream.close();
        },
      }),
    }),
  );
  const upload = async (to: string) => (await call(platform.socketPath, 'PUT', to, 'archive')).status;
  const waiting: Promise<number>[] = [];
  await until(async () => {
    const status = upload(path);
    const isWaiting = (await Promise.race([status, Bun.sleep(500)])) === undefined;
    if (isWaiting) waiting.push(status);
    return isWaiting;
  });
  expect(await upload(await pathFor(other.key, 'b'))).toBe(201);
  expect((await call(platform.socketPath, 'GET', '/health')).status).toBe(200);
  release.resolve();
  expect((await Promise.all(hanging)).map(({ status }) => status)).toEqual(hanging.map(() => 201));
  expect(await Promise.all(waiting)).toEqual([201]);
  expect(await upload(path)).toBe(201);
});

/** A sixth of the default, so that even a busy machine reaches the limit. */
const perSecond = defaultLimits.requestsPerSecond / 6;

test('event-loop time: one team sends the longest bodies as fast as it can, and is let in for no more than its share of them', async () => {
  await using platform = await Platform.start({ limits: { requestsPerSecond: perSecond } });
  const other = await platform.otherTeam();
  const long = JSON.stringify({
    templateID: 'base',
    timeout: 0,
    metadata: Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`k${i}`, 'x'.repeat(300)])),
  });
  const costs = 1 + Math.floor(long.length / 16_384);
  const startMs = performance.now();
  const taken = { over: false, letIn: 0, refused: 0 };
  const greedy = Array.from({ length: 8 }, async () => {
    while (!taken.over) {
      const { status } = await platform.call('POST', '/v2/sandboxes', long);
      if (status === 429) taken.refused++;
      else taken.letIn++;
    }
  });
  // Counts the admitted work, not the time: a slow machine does less of it.
  const modest: number[] = [];
  await using _ = { [Symbol.asyncDispose]: async () => ((taken.over = true), void (await Promise.allSettled(greedy))) };
  await until(() => taken.refused >= 50, 60_000);
  for (let index = 0; index < 50; index++)
    modest.push(
      (await call(platform.socketPath, 'GET', '/v2/sandboxes', undefined, { 'x-api-key': other.key })).status,
    );
  taken.over = true;
  await Promise.all(greedy);
  const seconds = (performance.now() - startMs) / 1000;
  expect(modest.filter(status => status !== 200)).toEqual([]);
  // What a team has saved up, what it may owe, and what it gets meanwhile.
  const allowed = perSecond * (10 + 10 + seconds);
  expect(taken.letIn * costs).toBeLessThanOrEqual(allowed);
});

test('log intake: one sandbox tells without end, and what another one tells is kept whole', async () => {
  const namespace = openNetworkNamespace(process.pid);
  const kept = new Map<string, number>();
  const sinkOf = (sandboxId: string): LogSink => ({
    gap: () => {},
    add: () => void kept.set(sandboxId, (kept.get(sandboxId) ?? 0) + 1),
    place: async () => undefined,
  });
  const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
  const lines = (from: number, count: number) =>
    Array.from(
      { length: count },
      (_, i) =>
        `${JSON.stringify({ n: from + i, t: Date.now(), l: 1, logger: 'process', message: 'x', fields: {} })}\n`,
    ).join('');
  const begun = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  const loud = { at: 1, waiting: '' };
  const tellMore = (socket: Bun.Socket) => {
    while (socket.readyState === 1) {
      if (loud.waiting === '') {
        loud.waiting = chunk(lines(loud.at, 1000));
        loud.at += 1000;
      }
      const sent = socket.write(loud.waiting);
      loud.waiting = loud.waiting.slice(Math.max(0, sent));
      if (loud.waiting !== '') return;
    }
  };
  const agent = (begin: (socket: Bun.Socket) => void, drain: (socket: Bun.Socket) => void) =>
    Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: begin, drain } });
  const greedy = agent(
    socket => (socket.write(begun + chunk(`${JSON.stringify({ epoch: 'a' })}\n`)), tellMore(socket)),
    tellMore,
  );
  const modest = agent(
    socket => void socket.write(begun + chunk(`${JSON.stringify({ epoch: 'b' })}\n`) + chunk(lines(1, 900))),
    () => {},
  );
  const follow = (sandboxId: string, server: typeof greedy) =>
    new LogFollower(
      {
        sandboxId,
        namespace: { ...namespace, connect: () => namespace.connect('ipv4', server.port) },
        controlToken: 't',
        createdMs: 0,
      },
      sinkOf(sandboxId),
      silentLog,
    );
  const startMs = performance.now();
  const followers = [follow('greedy', greedy), follow('modest', modest)];
  await until(() => kept.get('modest') === 900, 30_000);
  // A window in which the greedy one goes on: its rate is what counts.
  await Bun.sleep(1500);
  const seconds = (performance.now() - startMs) / 1000;
  expect(kept.get('greedy') ?? 0).toBeGreaterThan(100);
  // 1,000 entries for each second that was begun.
  expect(kept.get('greedy') ?? 0).toBeLessThanOrEqual(1000 * (Math.ceil(seconds) + 1));
  expect(kept.get('modest')).toBe(900);
  for (const follower of followers) await follower.stop();
  greedy.stop(true);
  modest.stop(true);
  namespace.close();
});
