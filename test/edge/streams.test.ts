import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startFixture, to } from './support/fixture.ts';

const gibibyte = 1_073_741_824;
/** Five times what the edge's memory may grow by. */
const muchBytes = gibibyte / 2;
const mebibyte = 1_048_576;
/** What a stream may add to the edge's memory: a few reads, and what the collector has not reached yet. */
const growthMaxBytes = 96 * mebibyte;

async function startEdgeProcess() {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'support/edge-process.ts')], { stdout: 'pipe' });
  const reader = child.stdout.getReader();
  const port = Number(new TextDecoder().decode((await reader.read()).value));
  const memoryBytes = (field: 'VmRSS' | 'VmHWM') =>
    Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024;
  return {
    url: `http://127.0.0.1:${port}`,
    memoryBytes,
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}

/** A server that sends and accepts as much as requested. */
function startBulkServer() {
  const block = new Uint8Array(mebibyte).fill(0x61);
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    maxRequestBodySize: 2 * gibibyte,
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url);
      if (request.method === 'POST') {
        let taken = 0;
        if (url.pathname === '/never') await new Promise(() => {});
        for await (const chunk of request.body ?? []) taken += chunk.length;
        return Response.json({ taken });
      }
      let left = Number(url.searchParams.get('bytes'));
      const body = new ReadableStream({
        type: 'bytes',
        pull(controller) {
          if (left <= 0) return controller.close();
          controller.enqueue(block.slice(0, Math.min(left, block.length)));
          left -= block.length;
        },
      });
      return new Response(body);
    },
  });
}

function upload(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) return controller.close();
      controller.enqueue(new Uint8Array(Math.min(left, mebibyte)));
      left -= mebibyte;
    },
  });
}

test('a download of 512 MiB passes in constant memory', async () => {
  await using edge = await startEdgeProcess();
  await using server = startBulkServer();
  const before = edge.memoryBytes('VmRSS');
  const response = await fetch(`${edge.url}/?bytes=${muchBytes}`, { headers: to('one', Number(server.port)) });
  let taken = 0;
  for await (const chunk of response.body ?? []) taken += chunk.length;
  expect(taken).toBe(muchBytes);
  expect(edge.memoryBytes('VmHWM') - before).toBeLessThan(growthMaxBytes);
}, 60_000);

test('an upload of 512 MiB passes in constant memory', async () => {
  await using edge = await startEdgeProcess();
  await using server = startBulkServer();
  const before = edge.memoryBytes('VmRSS');
  const response = await fetch(edge.url, {
    method: 'POST',
    body: upload(muchBytes),
    headers: to('one', Number(server.port)),
  });
  expect(await response.json()).toEqual({ taken: muchBytes });
  expect(edge.memoryBytes('VmHWM') - before).toBeLessThan(growthMaxBytes);
}, 60_000);

test('a reader that stops makes the server wait, not the edge grow', async () => {
  await using edge = await startEdgeProcess();
  await using server = startBulkServer();
  const abort = new AbortController();
  const before = edge.memoryBytes('VmRSS');
  const stopped = await Promise.all(
    Array.from({ length: 20 }, () =>
      fetch(`${edge.url}/?bytes=${gibibyte}`, { headers: to('one', Number(server.port)), signal: abort.signal }),
    ),
  );
  for (let last = 0; edge.memoryBytes('VmRSS') !== last;) {
    last = edge.memoryBytes('VmRSS');
    await Bun.sleep(200);
  }
  expect(stopped.every(response => response.ok)).toBe(true);
  expect(edge.memoryBytes('VmHWM') - before).toBeLessThan(growthMaxBytes);
  abort.abort();
}, 60_000);

test('many requests at once, of all kinds, get their own answers', async () => {
  await using fixture = startFixture();
  await using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const body = await request.text();
      return new Response(`${new URL(request.url).pathname} ${body}`);
    },
  });
  const ids = Array.from({ length: 20 }, (_, i) => `sandbox${i}`);
  for (const id of ids) fixture.sandbox(id);
  const requests = Array.from({ length: 2000 }, async (_, i) => {
    const body = 'b'.repeat((i * 7919) % 70_000);
    const id = ids[i % ids.length] as string;
    const response = await fetch(`${fixture.url}/${i}`, { method: 'POST', body, headers: to(id, Number(server.port)) });
    return (await response.text()) === `/${i} ${body}`;
  });
  expect((await Promise.all(requests)).filter(right => !right)).toEqual([]);
}, 30_000);
