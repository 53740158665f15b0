import { expect, test } from 'bun:test';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { openNative, type Native } from '../native.ts';
import type { Ending } from './end-status.ts';
import { startProgram } from './program.ts';
import type { Spawner } from './spawner.ts';

const launch = {
  argv: ['/bin/true'],
  environment: {},
  user: { name: 'root', uid: 0, gid: 0, groups: [], home: '/root' },
  cwd: '/',
  stdin: false,
  terminal: { cols: 80, rows: 24 },
};

test('where a terminal can not be made ready, its program is killed and its descriptors are closed once', async () => {
  const ended = Promise.withResolvers<Ending>();
  const signals: number[] = [];
  let master = -1;
  const spawner: Spawner = {
    start(_program, descriptors) {
      [master = -1] = descriptors;
      return Promise.resolve({ pid: 1234, ended: ended.promise });
    },
    adopt: () => Promise.resolve(undefined),
    nameHost: () => undefined,
    signal: (pid, number) => void signals.push(pid, number),
  };
  const native: Native = {
    ...openNative(),
    neverWait() {
      throw new Error('no descriptor is left');
    },
  };
  await expect(startProgram(launch, spawner, native)).rejects.toThrow('no descriptor is left');
  expect(signals).toEqual([1234, 9]);
  // Opens files until one has the terminal's former number.
  const opened = [];
  do opened.push(openSync('/dev/null', 'r'));
  while (!opened.includes(master) && opened.length < 100);
  ended.resolve({ signal: 9 });
  await ended.promise;
  await Bun.sleep(0);
  for (const fd of opened) fstatSync(fd);
  for (const fd of opened) closeSync(fd);
});
