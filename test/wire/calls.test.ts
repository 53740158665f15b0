import { describe, expect, test } from 'bun:test';
import { closeSync, openSync, readFileSync, readdirSync, readSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { AtollError } from '../../src/base/error.ts';
import { type Span, step, traced } from '../../src/base/telemetry/trace.ts';
import { method, type MethodTable } from '../../src/protocol/wire/method.ts';
import { descriptor, mapOf, nothing, optional } from '../../src/protocol/wire/schema.ts';
import { frameBytesMax } from '../../src/wire/frame.ts';
import { wiredBySocket, wiredInMemory } from './support/pair.ts';

type Lab = {
  echo(value: {
    text: string;
    more?: Record<string, { n: number }>;
  }): Promise<{ text: string; more?: Record<string, { n: number }> }>;
  count(first: number, second?: number): Promise<number>;
  nothing(): Promise<void>;
  fail(): Promise<void>;
  lie(): Promise<number>;
  wait(signal?: AbortSignal): Promise<void>;
  file(): Promise<number>;
  named(): Promise<{ name: string; descriptor: number }>;
  inner: { deep(): Promise<string> };
  forbidden(): Promise<void>;
};

const Echo = Type.Object({ text: Type.String(), more: optional(mapOf(Type.Object({ n: Type.Number() }))) });
const table = {
  echo: method([Echo], Echo),
  count: method([Type.Number(), optional(Type.Number())], Type.Number()),
  nothing: method([], nothing()),
  fail: method([], nothing()),
  lie: method([], Type.Number()),
  wait: method([], nothing(), { deadlineMs: 300 }),
  file: method([], descriptor(), { passes: 'whole' }),
  named: method([], Type.Object({ name: Type.String(), descriptor: descriptor() }), { passes: 'member' }),
  inner: { deep: method([], Type.String()) },
  forbidden: method([], nothing(), { callers: ['edge'] }),
} satisfies MethodTable<Lab>;

function lab(): Lab & { seen: unknown[] } {
  const seen: unknown[] = [];
  return {
    seen,
    echo: async value => (seen.push(value), value),
    count: async (first, second) => first + (second ?? 100),
    nothing: async () => 'this is nobody’s' as unknown as void,
    fail: async () => {
      throw new AtollError('no_space', 'all is full', {
        detail: 'disk',
        fields: { left: 3, what: { deep: 1 } },
        retryAfterSeconds: 7,
        cause: new Error('below'),
      });
    },
    lie: async () => 'five' as unknown as number,
    wait: signal =>
      new Promise((_, reject) => {
        seen.push('waits');
        signal?.addEventListener('abort', () => (seen.push('aborted'), reject(signal.reason)));
      }),
    file: async () => openSync('/etc/passwd', 'r'),
    named: async () => ({ name: 'passwd', descriptor: openSync('/etc/passwd', 'r') }),
    inner: { deep: async () => 'deep' },
    forbidden: async () => {},
  };
}

/** Waits until `holds`, for 20 seconds at most. */
async function until(holds: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 20_000; !holds() && performance.now() < deadline;) await Bun.sleep(1);
}

const ways = { 'in memory': wiredInMemory, 'over a socket': wiredBySocket };
const openFiles = () => readdirSync('/proc/self/fd').length;

for (const [way, wired] of Object.entries(ways)) {
  describe(way, () => {
    const start = (implementation = lab()) => ({ ...wired<Lab>(table, implementation, 'api'), implementation });

    test('answers come back, and of what goes over only what the schema names', async () => {
      using it = start();
      const request = { text: 'ünï', more: JSON.parse('{"a":{"n":1,"secret":2},"__proto__":{"n":3}}'), secret: 'x' };
      const answer = await it.remote.echo(request);
      expect(JSON.stringify(answer)).toBe('{"text":"ünï","more":{"a":{"n":1},"__proto__":{"n":3}}}');
      expect(JSON.stringify(it.implementation.seen)).toBe(`[${JSON.stringify(answer)}]`);
      expect(await it.remote.inner.deep()).toBe('deep');
      expect(await it.remote.nothing()).toBeUndefined();
    });

    test('arguments may be left out where the table says so', async () => {
      using it = start();
      expect(await it.remote.count(1)).toBe(101);
      expect(await it.remote.count(1, undefined as unknown as number)).toBe(101);
      expect(await it.remote.count(1, 2)).toBe(3);
    });

    test('an error arrives as it was thrown', async () => {
      using it = start();
      const error = await it.remote.fail().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(AtollError);
      expect(error).toMatchObject({
        code: 'no_space',
        message: 'all is full',
        detail: 'disk',
        fields: { left: 3, what: '[object Object]' },
        retryAfterSeconds: 7,
      });
      expect((error as AtollError).cause).toMatchObject({ message: 'below' });
    });

    test('an answer that its schema refuses is an error, and no answer', async () => {
      using it = start();
      await expect(it.remote.lie()).rejects.toMatchObject({ code: 'internal' });
    });

    test('a message that is too long for one fails alone, and other calls go on', async () => {
      using it = start({ ...lab(), echo: async ({ text }) => ({ text: text.repeat(frameBytesMax / 2 ** 20) }) });
      const other = it.remote.wait().catch((error: AtollError) => error.code);
      await expect(it.remote.echo({ text: 'x'.repeat(2 ** 20) })).rejects.toMatchObject({ code: 'too_large' });
      await expect(it.remote.echo({ text: 'x'.repeat(frameBytesMax) })).rejects.toMatchObject({ code: 'too_large' });
      expect(await other).toBe('deadline_exceeded');
      expect(await it.remote.count(1)).toBe(101);
    });

    test('a call of somebody else’s method is refused', async () => {
      using it = start();
      await expect(it.remote.forbidden()).rejects.toMatchObject({ code: 'forbidden' });
    });

    test('who gives up and who waits too long are told, and the other side hears it', async () => {
      using it = start();
      const stop = new AbortController();
      const waiting = it.remote.wait(stop.signal);
      await Promise.race([waiting, until(() => it.implementation.seen.length === 1)]);
      stop.abort();
      await expect(waiting).rejects.toMatchObject({ code: 'canceled' });
      await expect(it.remote.wait()).rejects.toMatchObject({ code: 'deadline_exceeded' });
      await it.remote.nothing();
      expect(it.implementation.seen).toEqual(['waits', 'aborted', 'waits', 'aborted']);
    });

    test('open files arrive, hundreds at once, and none stays open', async () => {
      using it = start();
      await it.remote.nothing();
      const before = openFiles();
      const passwd = readFileSync('/etc/passwd', 'utf8').slice(0, 10);
      const files = [
        ...(await Promise.all(Array.from({ length: 700 }, () => it.remote.file()))),
        (await it.remote.named()).descriptor,
      ];
      for (const file of files) {
        const bytes = Buffer.alloc(10);
        expect(readSync(file, bytes)).toBe(10);
        expect(bytes.toString()).toBe(passwd);
        closeSync(file);
      }
      expect(openFiles()).toBe(before);
    });

    test('a file that comes for nobody any more is closed', async () => {
      let opened = () => {};
      const open = new Promise<void>(resolve => (opened = resolve));
      let begun = false;
      using it = start({ ...lab(), file: async () => ((begun = true), await open, openSync('/etc/passwd', 'r')) });
      await it.remote.nothing();
      const before = openFiles();
      const stop = new AbortController();
      const asked = (it.remote.file as (signal: AbortSignal) => Promise<number>)(stop.signal);
      await Promise.race([asked, until(() => begun)]);
      stop.abort();
      await expect(asked).rejects.toMatchObject({ code: 'canceled' });
      opened();
      await it.remote.nothing();
      await until(() => openFiles() <= before);
      expect(openFiles()).toBe(before);
    });

    test('the steps of a call belong to the trace of its caller', async () => {
      using it = start({ ...lab(), nothing: () => step('outer', () => step('inner', async () => {})) });
      const recorded: Span[] = [];
      const { serverTiming } = await traced(() => step('call', () => it.remote.nothing()), {
        record: spans => void recorded.push(...spans),
      });
      expect(serverTiming).toMatch(/^inner;dur=\S+, outer;dur=\S+, call;dur=\S+, total/);
      expect(recorded.map(({ name }) => name)).toEqual(['inner', 'outer', 'call', 'request']);
      const [inner, outer, call] = recorded;
      expect([inner?.parentSpanId, outer?.parentSpanId]).toEqual([outer?.spanId, call?.spanId]);
    });

    test('many megabytes pass in one message', async () => {
      using it = start();
      const text = 'ö'.repeat(4 << 20);
      expect((await it.remote.echo({ text })).text === text).toBe(true);
    });
  });
}
