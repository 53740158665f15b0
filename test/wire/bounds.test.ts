import { expect, test } from 'bun:test';
import { mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { silentLog } from '../../src/base/telemetry/log.ts';
import type { AtollError } from '../../src/base/error.ts';
import { type Caller, method } from '../../src/protocol/wire/method.ts';
import { proxyOf } from '../../src/wire/call.ts';
import { connectionTo } from '../../src/wire/connect.ts';
import { checkedMethods } from '../../src/wire/checked.ts';
import { closeFile, filePair } from '../../src/wire/files.ts';
import { connectionsMax, listenOn } from '../../src/wire/listen.ts';
import { callsMax, CallBudget, serve } from '../../src/wire/serve.ts';
import { SocketChannel, waitingFilesMax } from '../../src/wire/socket-channel.ts';
import { memoryChannels } from './support/memory.ts';

// What a compromised process of the platform can take from the one that it calls.

const uid = process.getuid?.() ?? 0;
const openFiles = () => readdirSync('/proc/self/fd').length;

/** A connection, and whether it was hung up on. */
async function connect(path: string) {
  const state = { closed: false, greeted: Promise.withResolvers<void>() };
  const socket = await Bun.connect({
    unix: path,
    socket: {
      data: () => state.greeted.resolve(),
      close() {
        state.closed = true;
        state.greeted.resolve();
      },
    },
  });
  return { state, socket };
}

test(`a caller has ${connectionsMax} connections at a time, and another when one has ended`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-wire-'));
  const path = join(folder, 'part.sock');
  const listening = listenOn({ path, caller: 'edge', uid, log: silentLog }, { methods: new Map(), implementation: {} });
  const connections = [];
  for (let n = 0; n < connectionsMax; n++) connections.push(await connect(path));
  const before = openFiles();
  for (let n = 0; n < 3; n++) {
    const extra = await connect(path);
    await extra.state.greeted.promise;
    expect(extra.state.closed).toBe(true);
  }
  expect(connections.map(({ state }) => state.closed)).not.toContain(true);
  expect(openFiles()).toBeLessThanOrEqual(before);
  connections.shift()?.socket.terminate();
  for (;;) {
    const next = await connect(path);
    await Promise.race([next.state.greeted.promise, new Promise(resolve => setTimeout(resolve, 20))]);
    connections.push(next);
    if (!next.state.closed) break;
  }
  for (const { socket } of connections) socket.terminate();
  listening.stop();
  rmSync(folder, { recursive: true });
});

test('an edge says nothing long: who does is hung up on before it is read, and an api may', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-wire-'));
  const table = { take: method([Type.String()], Type.Integer(), { callers: ['api', 'edge'] }) };
  const implementation = { take: async (text: string) => text.length };
  const lengthOf = async (caller: Caller, length: number) => {
    const path = join(folder, `${caller}.sock`);
    const listening = listenOn(
      { path, caller, uid, log: silentLog },
      { methods: checkedMethods(table), implementation },
    );
    const connection = connectionTo(path, 'part', 500);
    const answer = await proxyOf<typeof implementation>(table, checkedMethods(table), connection)
      .take('x'.repeat(length))
      .catch((error: AtollError) => error.detail);
    connection.close();
    listening.stop();
    return answer;
  };
  expect(await lengthOf('edge', 60_000)).toBe(60_000);
  expect(await lengthOf('edge', 70_000)).toBe('part_lost');
  expect(await lengthOf('api', 70_000)).toBe(70_000);
  rmSync(folder, { recursive: true });
});

test(`a caller has ${callsMax} calls under way over all of its connections`, async () => {
  const table = { hang: method([], Type.Void()) };
  const methods = checkedMethods(table);
  const begun = Promise.withResolvers<void>();
  let running = 0;
  const implementation = {
    hang: (signal: AbortSignal) =>
      new Promise<void>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        if (++running === callsMax) begun.resolve();
      }),
  };
  const budget = new CallBudget();
  const ends = [memoryChannels(), memoryChannels()] as const;
  for (const [, served] of ends) serve(served, 'api', { methods, implementation, log: silentLog }, budget);
  const answers = Promise.withResolvers<string>();
  ends[0][0].listen({ message() {}, closed() {} });
  ends[1][0].listen({ message: text => answers.resolve(text), closed() {} });
  for (let id = 1; id <= callsMax; id++) ends[0][0].send(JSON.stringify({ id, call: 'hang', args: [] }));
  await begun.promise;
  ends[1][0].send(JSON.stringify({ id: 1, call: 'hang', args: [] }));
  expect(JSON.parse(await answers.promise)).toMatchObject({ error: { code: 'unavailable' } });
  // What was in progress on a connection that ends is returned.
  ends[0][0].close();
  await new Promise(resolve => setImmediate(resolve));
  ends[1][0].send(JSON.stringify({ id: 2, call: 'hang', args: [] }));
  await new Promise(resolve => setImmediate(resolve));
  expect(running).toBe(callsMax + 1);
  ends[1][0].close();
});

test(`${waitingFilesMax} open files wait for a reader that takes none, and with the next one all are closed`, () => {
  const before = openFiles();
  const [own, other] = filePair();
  let isOver = false;
  const socket = { write: (bytes: Uint8Array) => bytes.length, end() {}, terminate: () => void (isOver = true) };
  const channel = new SocketChannel(socket, own);
  let sent = 0;
  for (; !isOver && sent < 20 * waitingFilesMax; sent++) channel.send('{}', openSync('/dev/null', 'r'));
  expect(isOver).toBe(true);
  expect(sent).toBeGreaterThan(waitingFilesMax);
  closeFile(other);
  expect(openFiles()).toBeLessThanOrEqual(before);
});
