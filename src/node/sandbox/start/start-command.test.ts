import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import type { AgentProcess, ProcessEnd } from '../../agent-client/process.ts';
import { endOfStream, envelopeOf } from '../../../base/envelopes.ts';
import type { TemplateImage } from '../../../protocol/node.ts';
import { openNetworkNamespace } from '../../native/netns.ts';
import { awaitReady, launchStartCommand, readyTimeoutMs, startTemplateServer } from './start-command.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const succeeded: ProcessEnd = { exitCode: 0, status: 'exit status 0' };
const failed: ProcessEnd = { exitCode: 1, status: 'exit status 1' };
const commands = {
  startCommand: 'serve',
  readyCommand: 'is-ready',
  user: 'somebody',
  workdir: '/work',
  env: { NAME: 'value', PATH: '/opt/own:/usr/bin' },
};

/** Lets due work come to its end. */
async function after(ms = 0): Promise<void> {
  jest.advanceTimersByTime(ms);
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

/** A sandbox whose programs end as `ends` says, one after the other; the last end repeats. */
function sandbox(...ends: (ProcessEnd | Error | 'hangs')[]) {
  const ran: AgentProcess[] = [];
  const run = (process: AgentProcess): Promise<ProcessEnd> => {
    const end = ends[Math.min(ran.length, ends.length - 1)]!;
    ran.push(process);
    if (end instanceof Error) return Promise.reject(end);
    if (end !== 'hangs') return Promise.resolve(end);
    return new Promise((_, reject) => process.signal?.addEventListener('abort', () => reject(new Error('cut off'))));
  };
  return { run, ran };
}

/** Waits until the server is ready. */
function waiting(
  run: ReturnType<typeof sandbox>['run'],
  options: Partial<Parameters<typeof awaitReady>[2]> = {},
  what: Partial<typeof commands> | { readyCommand: undefined } = {},
) {
  const outcome = { value: 'waits' as unknown };
  const ready = awaitReady(run, { ...commands, ...what } as typeof commands, {
    started: undefined,
    timeoutMs: 60_000,
    ...options,
  });
  void ready.then(
    () => (outcome.value = 'ready'),
    (error: unknown) => (outcome.value = error),
  );
  return outcome;
}

test('the start command runs as the template says, as long as it likes', async () => {
  const { run, ran } = sandbox(succeeded);
  const output: string[] = [];
  const onOutput = (stream: string) => output.push(stream);
  const signal = new AbortController().signal;
  const onStart = () => {};
  expect(await launchStartCommand(run, commands, { signal, onStart, onOutput })).toEqual(succeeded);
  expect(ran[0]).toEqual({
    argv: ['/bin/bash', '-l', '-c', expect.stringContaining('serve') as string],
    user: 'somebody',
    env: commands.env,
    cwd: '/work',
    timeoutMs: 0,
    signal,
    onStart,
  });
  expect(ran[0]?.argv[3]).toContain("'/opt/own'");
  const none = { ...commands, startCommand: undefined };
  expect(launchStartCommand(run, none, { onOutput })).toBeUndefined();
  expect(ran).toHaveLength(1);
});

test('a start command that fails is nobody’s error before somebody waits for it', async () => {
  const started = launchStartCommand(sandbox(new Error('no bash')).run, commands, { onOutput: () => {} });
  await after();
  const outcome = waiting(sandbox(failed).run, { started });
  await after();
  expect(outcome.value).toMatchObject({ code: 'unavailable', message: 'the start command failed: no bash' });
});

test('the ready command is tried until it succeeds, soon at first and then every two seconds', async () => {
  const { run, ran } = sandbox(...Array.from({ length: 9 }, () => failed), succeeded);
  const outcome = waiting(run);
  await after();
  expect(ran).toHaveLength(1);
  expect(ran[0]).toMatchObject({ user: 'somebody', cwd: '/work', timeoutMs: 60_000, env: commands.env });
  expect(ran[0]?.argv[3]).toContain('is-ready');
  let tries = 1;
  for (const pauseMs of [20, 40, 80, 160, 320, 640, 1280, 2000, 2000]) {
    expect(outcome.value).toBe('waits');
    await after(pauseMs - 1);
    expect(ran).toHaveLength(tries);
    await after(1);
    expect(ran).toHaveLength(++tries);
  }
  expect(outcome.value).toBe('ready');
});

test('a server that is not ready in time has failed', async () => {
  const outcome = waiting(sandbox(failed).run, { timeoutMs: 10_000 });
  for (let seconds = 0; seconds < 10; seconds++) await after(1000);
  expect(outcome.value).toBe('waits');
  for (let seconds = 0; seconds < 3; seconds++) await after(1000);
  expect(outcome.value).toMatchObject({
    code: 'unavailable',
    message: 'the ready command has not succeeded within 10 s: is-ready',
  });
});

test('a try that takes too long is followed by another, and any other error ends the wait', async () => {
  const late = new AtollError('deadline_exceeded', 'too long');
  const { run, ran } = sandbox(late, succeeded);
  const outcome = waiting(run);
  await after();
  await after(20);
  expect([outcome.value, ran.length]).toEqual(['ready', 2]);
  for (const error of [new AtollError('unavailable', 'it ended'), new Error('of another kind')]) {
    const outcome = waiting(sandbox(error).run);
    await after();
    expect(outcome.value).toBe(error);
  }
});

test('a start command that ends well may have left its server behind', async () => {
  const { run, ran } = sandbox(failed, succeeded);
  const outcome = waiting(run, { started: Promise.resolve(succeeded) });
  await after();
  expect(ran).toHaveLength(1);
  await after(20);
  expect(outcome.value).toBe('ready');
});

test('a start command that fails ends the wait at once, while a try runs and between two', async () => {
  for (const [end, reason] of [
    [failed, 'exit status 1'],
    [new Error('cut off'), 'cut off'],
  ] as const) {
    for (const tries of ['hangs', failed] as const) {
      const { promise: started, resolve, reject } = Promise.withResolvers<ProcessEnd>();
      const { run, ran } = sandbox(tries);
      const outcome = waiting(run, { started });
      await after();
      if (end instanceof Error) reject(end);
      else resolve(end);
      await after();
      expect(outcome.value).toMatchObject({ code: 'unavailable', message: `the start command failed: ${reason}` });
      await after(10_000);
      expect(ran).toHaveLength(1);
    }
  }
});

test('a server that failed while the last attempt succeeded is not ready', async () => {
  const { promise: started, resolve } = Promise.withResolvers<ProcessEnd>();
  const run = async () => {
    resolve(failed);
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    return succeeded;
  };
  const outcome = waiting(run, { started });
  await after();
  expect(outcome.value).toMatchObject({ code: 'unavailable' });
});

test('a caller that gives up gets its own reason, wherever the wait is', async () => {
  for (const [ends, what] of [
    ['hangs', {}],
    [failed, {}],
    [failed, { readyCommand: undefined }],
  ] as const) {
    const leaving = new AbortController();
    const outcome = waiting(sandbox(ends).run, { signal: leaving.signal }, what);
    await after();
    expect(outcome.value).toBe('waits');
    leaving.abort(new Error('gone'));
    await after();
    expect(outcome.value).toMatchObject({ message: 'gone' });
  }
});

test('without a ready command a start command gets twenty seconds to fail', async () => {
  const { run, ran } = sandbox(succeeded);
  const outcome = waiting(run, {}, { readyCommand: undefined });
  await after(19_999);
  expect(outcome.value).toBe('waits');
  await after(1);
  expect(outcome.value).toBe('ready');
  const failing = waiting(run, { started: Promise.resolve(failed) }, { readyCommand: undefined });
  await after();
  expect(failing.value).toMatchObject({ code: 'unavailable', message: 'the start command failed: exit status 1' });
  const neither = waiting(run, {}, { readyCommand: undefined, startCommand: undefined } as never);
  await after();
  expect(neither.value).toBe('ready');
  expect(ran).toEqual([]);
});

/** Starts the server of a template in a sandbox whose agent reports the end in `ends`, or none. */
async function serverOf(image: object, accessToken: string | null, ends: Record<string, number>) {
  jest.useRealTimers();
  const asked: { command: string; token: string | null; user: string }[] = [];
  const closed = Promise.withResolvers<void>();
  const message = (value: unknown, flags = 0) => {
    const envelope = envelopeOf(Buffer.from(JSON.stringify(value)));
    envelope[0] = flags;
    return envelope;
  };
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { process } = JSON.parse(Buffer.from(await request.arrayBuffer()).toString('utf8', 5)) as {
        process: { args: string[] };
      };
      const command = process.args.at(-1) ?? '';
      const user = atob((request.headers.get('Authorization') ?? '').replace('Basic ', ''));
      asked.push({ command, token: request.headers.get('X-Access-Token'), user });
      const exitCode = ends[command];
      request.signal.addEventListener('abort', () => closed.resolve());
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(message({ event: { start: { pid: 1 } } }));
          if (exitCode === undefined) return;
          controller.enqueue(message({ event: { end: { exitCode, status: `exit status ${exitCode}` } } }));
          controller.enqueue(message({}, endOfStream));
          controller.close();
        },
      });
      return new Response(body);
    },
  });
  const own = openNetworkNamespace(process.pid);
  const namespace = { ...own, connect: () => own.connect('ipv4', server.port ?? 0) };
  const usual = { defaultUser: 'user', defaultWorkdir: '/work', buildEnv: {} };
  const template = { ...usual, ...image } as unknown as TemplateImage;
  const outcome = await startTemplateServer(namespace, template, accessToken).then(
    () => 'started',
    (error: unknown) => error,
  );
  return {
    outcome,
    asked,
    closed: closed.promise,
    async [Symbol.asyncDispose]() {
      own.close();
      await server.stop(true);
    },
  };
}

test('the server of a template runs on when it is ready, and nobody stays connected to it', async () => {
  await using it = await serverOf({ startCommand: 'serve', readyCommand: 'is-ready' }, 'secret', { 'is-ready': 0 });
  expect(it.outcome).toBe('started');
  expect(it.asked).toEqual(
    ['serve', 'is-ready'].map(command => ({ command, token: 'secret', user: 'user:' })) as typeof it.asked,
  );
  await it.closed;
});

test('without a ready command it is ready when it runs, and without either there is nothing to start', async () => {
  await using it = await serverOf({ startCommand: 'serve' }, null, {});
  expect(it.outcome).toBe('started');
  expect(it.asked).toEqual([{ command: 'serve', token: null, user: 'user:' }]);
  await using none = await serverOf({}, null, {});
  expect([none.outcome, none.asked]).toEqual(['started', []]);
  await using ready = await serverOf({ readyCommand: 'is-ready' }, null, { 'is-ready': 0 });
  expect([ready.outcome, ready.asked.length]).toEqual(['started', 1]);
});

test('a server that fails while somebody waits for it is reported', async () => {
  await using it = await serverOf({ startCommand: 'serve', readyCommand: 'is-ready' }, null, {
    serve: 2,
    'is-ready': 1,
  });
  expect(it.outcome).toMatchObject({ code: 'unavailable', message: 'the start command failed: exit status 2' });
});

test('a create waits less than its caller does, who has a minute, and a build ten minutes', () => {
  expect(readyTimeoutMs.create).toBeLessThan(60_000);
  expect(readyTimeoutMs.create).toBeGreaterThan(30_000);
  expect(readyTimeoutMs.build).toBe(600_000);
});
