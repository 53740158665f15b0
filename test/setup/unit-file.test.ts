import { expect } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unitText } from '../../src/bin/systemd/unit.ts';
import { testUnless } from '../support/skip.ts';

testUnless(Bun.which('systemd-analyze') === null ? 'no systemd-analyze' : undefined)(
  'systemd understands every line',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'atoll-unit-'));
    try {
      const file = join(folder, 'atoll.service');
      writeFileSync(file, unitText({ program: '/bin/true', dataDir: '/srv/at oll%x', namesDataDir: true }));
      const { exitCode, stderr } = Bun.spawnSync(['systemd-analyze', 'verify', '--man=no', file]);
      expect({ exitCode, said: stderr.toString().includes(file) }).toEqual({ exitCode: 0, said: false });
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
