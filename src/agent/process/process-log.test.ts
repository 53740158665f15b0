import { expect, test } from 'bun:test';
import { createOutputBudget } from '../journal/budget.ts';
import type { Journal } from '../journal/journal.ts';
import { masked } from '../journal/mask.ts';
import { logProcess } from './process-log.ts';

type Facts = Parameters<typeof logProcess>[2];

/** A logged process, and the entries of the log. */
function logged(facts: Partial<Facts> = {}) {
  const entries: { level: string; message: string; fields: Record<string, string>; now: boolean }[] = [];
  const journal = {
    add: (level: string, _: string, message: string, fields: Record<string, string>, { now = false } = {}) =>
      void entries.push({ level, message, fields, now }),
  } as unknown as Journal;
  const config = { cmd: 'ls', args: ['-l'], envs: {} };
  const log = logProcess(journal, createOutputBudget(), {
    ...{ pid: 7, config, tag: undefined, user: '', environment: {}, withOutput: true },
    ...facts,
  });
  return { log, entries };
}
const shown = (cmd: string, ...args: string[]) =>
  logged({ config: { cmd, args, envs: {} } }).entries[0]?.fields['command'];

test('a start is logged with who runs what and where', () => {
  expect(logged().entries).toEqual([
    { level: 'info', message: 'started: ls -l', fields: { event: 'start', pid: '7', command: 'ls -l' }, now: false },
  ]);
  const config = { cmd: 'ls', args: [], envs: {}, cwd: '/tmp' };
  expect(logged({ config, tag: 'mine', user: 'someone', adopted: true }).entries).toMatchObject([
    {
      message: 'taken over: ls',
      fields: { event: 'takeover', pid: '7', tag: 'mine', command: 'ls', user: 'someone', cwd: '/tmp' },
    },
  ]);
});

test('a command line is shown as a shell would take it, and a shell’s script as it is', () => {
  expect(shown('cp', 'a b', '', 'x/y-z_1.txt', 'k=v')).toBe('cp "a b" "" x/y-z_1.txt k=v');
  expect(shown('/bin/bash', '-l', '-c', 'echo "a b"')).toBe('echo "a b"');
  expect(shown('sh', '-ec', 'a | b')).toBe('a | b');
  for (const name of ['sh', 'bash', 'dash', 'zsh', '/usr/bin/zsh']) expect(shown(name, '-c', 'a | b')).toBe('a | b');
  expect(shown('fish', '-c', 'a | b')).toBe('fish -c "a | b"');
  expect(shown('mash', '-c', 'a | b')).toBe('mash -c "a | b"');
  expect(shown('sh', 'a b', '-c')).toBe('sh "a b" -c');
  expect(shown('sh', '-e', 'a b')).toBe('sh -e "a b"');
  expect(shown('sh', '-c', 'a b', 'name')).toBe('sh -c "a b" name');
  expect(shown('sh')).toBe('sh');
});

test('of a long command line the first thousand characters are shown', () => {
  expect(shown('x'.repeat(1000))).toBe('x'.repeat(1000));
  expect(shown('x'.repeat(1001))).toBe(`${'x'.repeat(1000)}… (1001 characters)`);
});

test('no secret of the environment is written down, of the sandbox’s or the process’s', () => {
  const { log, entries } = logged({
    config: { cmd: 'run', args: ['my-secret', 'my-token'], envs: { TOKEN: 'my-token' } },
    ...{ environment: { SECRET: 'my-secret' }, tag: 'my-secret' },
  });
  log.linesOf('stdout')?.take(Buffer.from('it is my-token\n'));
  expect(entries.map(({ message }) => message)).toEqual([`started: run ${masked} ${masked}`, `it is ${masked}`]);
  expect(entries[0]?.fields).toMatchObject({ command: `run ${masked} ${masked}`, tag: masked });
});

test('outputs are logged where they are to be, except a terminal’s', () => {
  const { log, entries } = logged();
  log.linesOf('stderr')?.take(Buffer.from('failed\n'));
  expect(entries[1]).toEqual({ level: 'info', message: 'failed', fields: { event: 'stderr', pid: '7' }, now: false });
  expect(log.linesOf('pty')).toBeUndefined();
  expect(logged({ withOutput: false }).log.linesOf('stdout')).toBeUndefined();
});

test('the log tells how much did not fit', () => {
  const { log, entries } = logged();
  const lines = log.linesOf('stdout');
  lines?.take(Buffer.from('x\n'.repeat(600)));
  lines?.end();
  expect(entries.at(-1)).toMatchObject({
    level: 'warn',
    message: expect.stringMatching(/^\d+ bytes of stdout are not in the log/),
    fields: { event: 'dropped', bytes: expect.stringMatching(/^\d+$/) },
  });
});

test('signals and the end are logged, the end at once', () => {
  const { log, entries } = logged();
  log.signalled(15);
  log.ended({ status: 'exit status 0', exited: true });
  log.ended({ exitCode: -1, status: 'signal: killed', error: 'signal: killed (out of memory)' });
  expect(entries.slice(1)).toMatchObject([
    { level: 'info', message: 'signal 15 was sent', fields: { event: 'signal', signal: '15', pid: '7' }, now: false },
    { level: 'info', message: 'ended: exit status 0', fields: { event: 'end', exitCode: '0' }, now: true },
    { level: 'warn', message: 'ended: signal: killed (out of memory)', fields: { exitCode: '-1' }, now: true },
  ]);
  // It measures elapsed time, not the wall clock.
  expect(Number(entries[2]?.fields['durationMs'])).toBeLessThan(performance.now());
});
