import { expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { startProgram } from './child-process.ts';

const longMs = 60_000;
const textOf = (stream: ReadableStream<Uint8Array>) => new Response(stream).text();

test('how a program ended is reported as facts', async () => {
  const { ended, stdout } = startProgram(['/bin/sh', '-c', 'cat; exit 3'], {
    input: Buffer.from('a text'),
    timeoutMs: longMs,
  });
  expect(await textOf(stdout)).toBe('a text');
  expect(await ended).toEqual({ exitCode: 3, signal: null, timedOut: false, canceled: false });
});

test('a program that a signal of its own ends has not timed out', async () => {
  const { ended } = startProgram(['/bin/sh', '-c', 'kill -9 $$'], { input: 'ignore', timeoutMs: longMs });
  expect(await ended).toEqual({ exitCode: null, signal: 'SIGKILL', timedOut: false, canceled: false });
});

test('a program that takes too long, or whose caller gave up, is killed with its group', async () => {
  const argv = ['/bin/sh', '-c', 'sleep 1000 & echo $!; wait'];
  const late = startProgram(argv, { input: 'ignore', timeoutMs: 300, ownGroup: true });
  const abort = new AbortController();
  const canceled = startProgram(argv, { input: 'ignore', timeoutMs: longMs, signal: abort.signal, ownGroup: true });
  const { value } = await canceled.stdout.getReader().read();
  abort.abort();
  expect(await late.ended).toMatchObject({ exitCode: null, timedOut: true, canceled: false });
  expect(await canceled.ended).toMatchObject({ exitCode: null, timedOut: false, canceled: true });
  // The output ends when no process is left that could write to it. On a busy machine the process may not have written
  // yet.
  expect(await textOf(late.stdout)).toMatch(/^(\d+\n)?$/);
  while (existsSync(`/proc/${Number(new TextDecoder().decode(value))}/exe`)) await Bun.sleep(5);
});

test('the rest of a group is killed when its program has ended', async () => {
  const { ended, stdout } = startProgram(['/bin/sh', '-c', 'sleep 1000 & exit 0'], {
    input: 'ignore',
    timeoutMs: longMs,
    ownGroup: true,
  });
  expect((await ended).exitCode).toBe(0);
  expect(await textOf(stdout)).toBe('');
});
