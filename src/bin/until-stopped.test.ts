import { afterEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { refusedExitCode } from './systemd/unit.ts';

const children: Bun.Subprocess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    await child.exited;
  }
});

/** Imports of the programs below, by their absolute paths. */
const from = (path: string) => JSON.stringify(join(import.meta.dir, path));

type Given = {
  /** The source of the function that starts what runs. */
  start: string;
  /** A service manager started it: what the manager is told is printed as well. */
  asService?: boolean;
  watchdogMs?: number;
};

/** A process that runs `start` until it is stopped. Everything it says is a line of its output. */
function running({ start, asService = false, watchdogMs }: Given) {
  const program = `
    import { runUntilStopped } from ${from('until-stopped.ts')};
    import { AtollError } from ${from('../base/error.ts')};
    const say = text => process.stdout.write(text + '\\n');
    const terminal = { out: say, err: text => say('err ' + text.trim()), isInteractive: false };
    const notify = (...assignments) => say('notify ' + assignments.join(' '));
    const manager = { notify, watchdogMs: ${watchdogMs} };
    const never = new Promise(() => setInterval(() => {}, 1000));
    const usual = { failed: never, serving: 'Serving', [Symbol.asyncDispose]: async () => say('ended') };
    const open = (more = {}) => ({ ...usual, ...more });
    const service = ${asService ? `{ command: 'up', manager }` : 'undefined'};
    runUntilStopped(terminal, ${start}, service).then(
      code => (say('code ' + code), process.exit(code)),
      error => (say('threw ' + error.message), process.exit(99)),
    );`;
  const child = Bun.spawn([process.execPath, '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const lines: string[] = [];
  let wake = () => {};
  const read = (async () => {
    let rest = '';
    for await (const part of child.stdout.pipeThrough(
      new TextDecoderStream() as never,
    ) as unknown as AsyncIterable<string>) {
      const all = (rest + part).split('\n');
      rest = all.pop() ?? '';
      lines.push(...all);
      wake();
    }
  })();
  /** When this was said. */
  const said = async (text: string, times = 1) => {
    while (lines.filter(line => line.startsWith(text)).length < times)
      await new Promise<void>(resolve => (wake = resolve));
  };
  const ended = async () => {
    const code = await child.exited;
    await read;
    return code;
  };
  return { child, lines, said, ended };
}

const serves = `async () => (say('starts'), open())`;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  test(`${signal} stops what serves, in order`, async () => {
    const { child, lines, said, ended } = running({
      start: `async signal => { setTimeout(() => say('serves')); return open({
        [Symbol.asyncDispose]: async () => say('ended, ' + signal.aborted) }) }`,
    });
    await said('serves');
    child.kill(signal);
    expect(await ended()).toBe(0);
    expect(lines).toEqual([
      'serves',
      'err Stopping. Sandboxes run on; the next start takes them over.',
      'ended, true',
      'code 0',
    ]);
  });

test('a service manager is told when it serves, that it goes on, and that it stops', async () => {
  const { child, lines, said, ended } = running({ start: serves, asService: true, watchdogMs: 6 });
  await said('notify WATCHDOG=1', 3);
  child.kill('SIGTERM');
  expect(await ended()).toBe(0);
  expect(lines.filter(line => line !== 'notify WATCHDOG=1')).toEqual([
    ...['starts', 'notify READY=1 STATUS=Serving', 'notify STOPPING=1 STATUS=Stopping; sandboxes run on'],
    ...['err Stopping. Sandboxes run on; the next start takes them over.', 'ended', 'code 0'],
  ]);
});

test('where its sandboxes are ended after it, it says that', async () => {
  const { child, lines, said, ended } = running({
    start: `async () => open({ goesDown: () => true })`,
    asService: true,
  });
  await said('notify READY=1');
  child.kill('SIGTERM');
  expect(await ended()).toBe(0);
  expect(lines.slice(1)).toEqual([
    ...['notify STOPPING=1 STATUS=Stopping; sandboxes end after it'],
    ...['err Stopping. Sandboxes are ended after it.', 'ended', 'code 0'],
  ]);
});

test('a manager without a watchdog hears nothing of it', async () => {
  const { child, lines, said, ended } = running({ start: serves, asService: true });
  await said('notify READY=1');
  child.kill('SIGTERM');
  await ended();
  expect(lines.filter(line => line.includes('WATCHDOG'))).toEqual([]);
});

const interrupted = `signal => (say('starts'), new Promise((_, reject) =>
  signal.addEventListener('abort', () => reject(signal.reason)), setInterval(() => {}, 1000)))`;

test('a start that is interrupted ends as that, and of a service in order', async () => {
  const alone = running({ start: interrupted });
  await alone.said('starts');
  alone.child.kill('SIGINT');
  expect([await alone.ended(), alone.lines]).toEqual([130, ['starts', 'err Interrupted.', 'code 130']]);
  const service = running({ start: interrupted, asService: true });
  await service.said('starts');
  service.child.kill('SIGTERM');
  expect([await service.ended(), service.lines]).toEqual([0, ['starts', 'code 0']]);
});

test('a second Ctrl-C ends it at once; another request to stop does not', async () => {
  const start = `async () => { setTimeout(() => say('serves')); return open({
    [Symbol.asyncDispose]: async () => { say('stops'); await Bun.sleep(60_000) } }) }`;
  const { child, lines, said, ended } = running({ start });
  await said('serves');
  child.kill('SIGTERM');
  await said('stops');
  child.kill('SIGTERM');
  child.kill('SIGHUP');
  child.kill('SIGINT');
  expect(await ended()).toBe(1);
  expect(lines.at(-1)).toBe('stops');
});

const failing = (error: string) => `async () => { throw ${error} }`;

test('a start that fails throws; a service manager is told why, and whether another try makes sense', async () => {
  const alone = running({ start: failing(`new AtollError('invalid', 'a setting')`) });
  expect([await alone.ended(), alone.lines]).toEqual([99, ['threw a setting']]);
  for (const [code, exitCode] of [
    ['invalid', refusedExitCode],
    ['precondition', refusedExitCode],
    ['unimplemented', refusedExitCode],
    ['conflict', 1],
    ['unavailable', 1],
  ] as const) {
    const start = failing(`new AtollError('${code}', 'first line\\nsecond')`);
    const { ended, lines } = running({ start, asService: true });
    expect([await ended(), lines]).toEqual([
      exitCode,
      ['notify STATUS=first line', 'err atoll up: first line', 'second', `code ${exitCode}`],
    ]);
  }
  const defect = running({ start: failing(`new Error('a defect')`), asService: true });
  expect([await defect.ended(), defect.lines]).toEqual([99, ['threw a defect']]);
});

test('a process that can’t go on is ended, and has failed', async () => {
  const start = `async () => open({ failed: Promise.reject(new AtollError('internal', 'lost')) })`;
  const { ended, lines } = running({ start, asService: true });
  expect(await ended()).toBe(1);
  expect(lines.slice(1)).toEqual(['ended', 'notify STATUS=lost', 'err atoll up: lost', 'code 1']);
});
