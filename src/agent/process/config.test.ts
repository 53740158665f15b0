import { expect, test } from 'bun:test';
import { readProcessConfig, readTerminalSize } from './config.ts';
import { endEventOf, endingOfWaitStatus } from './end-status.ts';

const invalid = (message: string) =>
  expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) });

test('absent fields of a command are read as empty', () => {
  expect(readProcessConfig({})).toEqual({ cmd: '', args: [], envs: {} });
  const config = { cmd: 'ls', args: ['-l', ''], envs: { A: 'b=c', 'b.c': '' }, cwd: '/tmp' };
  expect(readProcessConfig({ ...config, unknown: 1 })).toEqual(config);
});

test('a command that the kernel could not take is refused', () => {
  for (const config of [{ cmd: 'a\0' }, { args: ['a', 'b\0c'] }])
    expect(() => readProcessConfig(config)).toThrow(invalid('a zero byte'));
  for (const envs of [{ '': 'a' }, { 'A=B': 'a' }, { 'A\0': 'a' }, { A: 'b\0' }])
    expect(() => readProcessConfig({ envs })).toThrow(invalid("can't be an environment variable"));
  expect(() => readProcessConfig([])).toThrow(invalid('process'));
});

test('a terminal is as large as it is asked to be, and a classic one otherwise', () => {
  const size = (value?: unknown) => readTerminalSize(value === undefined ? {} : { size: value });
  expect(size({ cols: 100, rows: 7 })).toEqual({ cols: 100, rows: 7 });
  for (const none of [undefined, {}, { cols: 0, rows: 0 }]) expect(size(none)).toEqual({ cols: 80, rows: 24 });
  expect(size({ cols: 65_535, rows: 65_536 })).toEqual({ cols: 65_535, rows: 65_535 });
});

test('an end is an exit code or a signal, as the kernel writes it', () => {
  expect([0x0000, 0x0300, 0xff00].map(endingOfWaitStatus)).toEqual([
    { exitCode: 0 },
    { exitCode: 3 },
    { exitCode: 255 },
  ]);
  // With and without a core dump.
  expect([0x0009, 0x008b].map(endingOfWaitStatus)).toEqual([{ signal: 9 }, { signal: 11 }]);
});

test('clients compare how a process ended, and hear why', () => {
  expect(endEventOf({ exitCode: 0 }, false)).toEqual({ exited: true, status: 'exit status 0' });
  expect(endEventOf({ exitCode: 0 }, true)).toEqual({ exited: true, status: 'exit status 0' });
  expect(endEventOf({ exitCode: 3 }, false)).toEqual({
    ...{ exitCode: 3, exited: true, status: 'exit status 3', error: 'exit status 3' },
  });
  expect(endEventOf({ exitCode: 3 }, true)).toMatchObject({
    ...{ status: 'exit status 3', error: expect.stringMatching(/^exit status 3 \(out of memory/) },
  });
  expect(endEventOf({ signal: 9 }, false)).toEqual({ exitCode: -1, status: 'signal: killed', error: 'signal: killed' });
  expect(endEventOf({ signal: 9 }, true)).toMatchObject({
    ...{ status: 'signal: killed', error: expect.stringMatching(/^signal: killed \(out of memory/) },
  });
  expect(endEventOf({ signal: 64 }, false).status).toBe('signal: signal 64');
});
