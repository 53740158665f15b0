import { expect } from 'bun:test';
import { join } from 'node:path';
import { findRunsc } from '../../src/node/drivers/gvisor/find-runsc.ts';
import { testUnless } from '../support/skip.ts';
import { addresses } from './support/addresses.ts';
import { startLab } from './support/lab.ts';

const runsc = findRunsc(join(import.meta.dir, '../../dist/runsc'));

testUnless(runsc.found ? undefined : `no gVisor here: ${runsc.reason}`)(
  "a network stack that is not the kernel's has the same way out",
  async () => {
    const lab = await startLab({ driver: 'gvisor' });
    try {
      const get = async (sandbox: string, url: string) =>
        (await lab.run(sandbox, `curl -sS --max-time 10 ${url}`)).stdout;
      const open = await lab.create({ internetAccess: true });
      expect(await get(open, `http://${addresses.other}/`)).toBe('page of other\n');
      expect(await get(open, 'http://allowed.test/')).toBe('page of allowed\n');
      const named = await lab.create({ internetAccess: true, denyOut: ['0.0.0.0/0'], allowOut: ['allowed.test'] });
      expect(await get(named, 'http://allowed.test/')).toBe('page of allowed\n');
      expect(await get(named, `http://${addresses.other}/`)).toBe('');
      expect(await get(open, 'http://192.0.2.2:3000/')).toBe('');
      expect(await lab.intrusions()).toEqual([]);
      for (const sandbox of [open, named]) await lab.kill(sandbox);
    } finally {
      await lab.dispose();
    }
  },
  120_000,
);
