import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isUnitOf, unitText } from '../../src/bin/systemd/unit.ts';
import { testUnless } from '../support/skip.ts';

test('a unit is known as that of its own installation, and of no other', () => {
  for (const namesDataDir of [true, false]) {
    const text = unitText({ program: '/bin/true', dataDir: '/srv/atoll', namesDataDir });
    expect(isUnitOf(text, '/srv/atoll/settings')).toBe(true);
    for (const other of ['/srv/other/settings', '/atoll/settings', '/srv/atoll'])
      expect(isUnitOf(text, other)).toBe(false);
  }
  // As the first version wrote it.
  expect(isUnitOf('# Made by atoll. Settings: /srv/atoll/settings\n[Unit]\n', '/srv/atoll/settings')).toBe(true);
});

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
