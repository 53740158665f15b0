import { expect, test } from 'bun:test';
import { readProcessConfig, readTerminalSize } from './config.ts';
import { endEventOf, endingOfWaitStatus } from './end-status.ts';
import { processEnvironment } from './environment.ts';

test('a command is read as it was given, and what the kernel would cut is refused', () => {
  expect(readProcessConfig({ cmd: 'a', args: ['b', ''], envs: { C: 'd=e', F: '' }, cwd: '' })).toEqual({
    ...{ cmd: 'a', args: ['b', ''], envs: { C: 'd=e', F: '' }, cwd: '' },
  });
  expect(readProcessConfig({})).toEqual({ cmd: '', args: [], envs: {} });
  for (const [wrong, says] of [
    [{ cmd: 'a\0b' }, 'an argument contains a zero byte'],
    [{ cmd: 'a', args: ['b', 'c\0'] }, 'an argument contains a zero byte'],
    [{ envs: { '': 'a' } }, "'' can't be an environment variable"],
    [{ envs: { 'A=B': 'a' } }, "'A=B' can't be"],
    [{ envs: { 'A\0': 'a' } }, "can't be an environment variable"],
    [{ envs: { A: 'b\0' } }, "'A' can't be an environment variable"],
    ['text', 'process must be an object'],
  ] as const)
    expect(() => readProcessConfig(wrong)).toThrow(says);
});

test('a terminal has the size that was asked for, as far as the kernel has such', () => {
  expect(readTerminalSize({ size: { cols: 132, rows: 50 } })).toEqual({ cols: 132, rows: 50 });
  for (const message of [{}, { size: {} }, { size: { cols: 0, rows: 0 } }])
    expect(readTerminalSize(message)).toEqual({ cols: 80, rows: 24 });
  expect(readTerminalSize({ size: { cols: 65_536, rows: 65_535 } })).toEqual({ cols: 65_535, rows: 65_535 });
});

test('what the call says of the environment goes before what the sandbox says, and that before what all have', () => {
  const user = { name: 'u', home: '/home/u' } as Parameters<typeof processEnvironment>[0];
  const all = processEnvironment(user, {}, {});
  expect(all).toMatchObject({ HOME: '/home/u', USER: 'u', LOGNAME: 'u', LANG: 'C.UTF-8' });
  expect(Object.keys(all).toSorted()).toEqual(['HOME', 'LANG', 'LOGNAME', 'PATH', 'USER']);
  expect(processEnvironment(user, { PATH: '/s', A: 's', B: 's' }, { A: 'c', HOME: '/c' })).toMatchObject({
    ...{ PATH: '/s', A: 'c', B: 's', HOME: '/c' },
  });
});

test('the end of a program is told as the published clients compare it', () => {
  const memory = ' (out of memory: the memory limit of the sandbox was reached)';
  for (const [status, outOfMemory, event] of [
    [0, false, { exited: true, status: 'exit status 0' }],
    [0, true, { exited: true, status: 'exit status 0' }],
    [3 << 8, false, { exitCode: 3, exited: true, status: 'exit status 3', error: 'exit status 3' }],
    [255 << 8, true, { exitCode: 255, exited: true, status: 'exit status 255', error: `exit status 255${memory}` }],
    [1, false, { exitCode: -1, status: 'signal: hangup', error: 'signal: hangup' }],
    [9, true, { exitCode: -1, status: 'signal: killed', error: `signal: killed${memory}` }],
    // With a core (wait(2)).
    [11 | 0x80, false, { exitCode: -1, status: 'signal: segmentation fault', error: 'signal: segmentation fault' }],
    [31, false, { exitCode: -1, status: 'signal: bad system call', error: 'signal: bad system call' }],
    [34, false, { exitCode: -1, status: 'signal: signal 34', error: 'signal: signal 34' }],
  ] as const)
    expect(endEventOf(endingOfWaitStatus(status), outOfMemory)).toEqual(event);
});
