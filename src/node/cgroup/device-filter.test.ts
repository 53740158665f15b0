import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testUnless } from '../../../test/support/skip.ts';
import { filterDevices } from './device-filter.ts';

/** A hierarchy of version 2, also beside version 1; a machine without one has no use for the filter. */
const hierarchy = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find(path =>
  existsSync(join(path, 'cgroup.controllers')),
);

testUnless(hierarchy === undefined ? 'there are no control groups of version 2' : undefined)(
  'below a group with the filter only what is allowed can be opened or made',
  () => {
    const group = join(hierarchy ?? '', `atoll-devices-${process.pid}`);
    const below = join(group, 'below');
    mkdirSync(below, { recursive: true });
    try {
      const run = (script: string) =>
        Bun.spawnSync(['sh', '-c', `echo $$ > ${below}/cgroup.procs && ${script}`]).exitCode;
      const useAll = 'cat /dev/null && : > /dev/zero && head -c 1 /dev/urandom && : < /dev/ptmx';
      const node = join('/tmp', `atoll-devices-${process.pid}`);
      const makeLoop = `mknod ${node} b 7 99 && rm ${node}`;
      const openKernelLog = 'exec 3< /dev/kmsg';
      expect([useAll, makeLoop, openKernelLog].map(run)).toEqual([0, 0, 0]);
      // Applying it again stands for a platform that is started again.
      for (let time = 0; time < 3; time++) filterDevices(group);
      expect(run(useAll)).toBe(0);
      expect([makeLoop, openKernelLog].map(script => run(script) === 0)).toEqual([false, false]);
      expect(run(`mknod ${node} c 1 3 && rm ${node}`)).toBe(0);
      writeFileSync('/dev/null', '');
    } finally {
      rmdirSync(below);
      rmdirSync(group);
    }
  },
);

test('if there is no such group the error says why', () => {
  expect(() => filterDevices('/proc/self')).toThrow('errno');
  expect(() => filterDevices('/nowhere')).toThrow('ENOENT');
});
