import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isUnitOf, unitsOf, unitText } from '../../src/bin/systemd/unit.ts';
import { testUnless } from '../support/skip.ts';

test('a unit is known as that of its own installation, and of no other', () => {
  for (const namesDataDir of [true, false]) {
    const text = unitText({ program: '/bin/true', role: 'platform', dataDir: '/srv/atoll', namesDataDir });
    expect(isUnitOf(text, '/srv/atoll/settings')).toBe(true);
    for (const other of ['/srv/other/settings', '/atoll/settings', '/srv/atoll'])
      expect(isUnitOf(text, other)).toBe(false);
  }
  // As the first version wrote it.
  expect(isUnitOf('# Made by atoll. Settings: /srv/atoll/settings\n[Unit]\n', '/srv/atoll/settings')).toBe(true);
});

test('the units of an installation are found by what they run, whatever their names', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-units-'));
  try {
    const facts = { program: '/bin/true', role: 'platform' as const, namesDataDir: true };
    writeFileSync(join(folder, 'atoll.service'), unitText({ ...facts, dataDir: '/var/lib/atoll' }));
    writeFileSync(join(folder, 'beta.service'), unitText({ ...facts, dataDir: '/srv/b' }));
    writeFileSync(join(folder, 'gone.service~'), unitText({ ...facts, dataDir: '/srv/b' }));
    // Units that were masked, disabled by hand, or left behind by a removed package.
    symlinkSync('/dev/null', join(folder, 'masked.service'));
    symlinkSync(join(folder, 'nowhere'), join(folder, 'dangling.service'));
    mkdirSync(join(folder, 'multi-user.target.wants'));
    expect(unitsOf('/srv/b/settings', folder)).toEqual(['beta']);
    expect(unitsOf('/var/lib/atoll/settings', folder)).toEqual(['atoll']);
    expect(unitsOf('/srv/c/settings', folder)).toEqual([]);
    expect(unitsOf('/srv/b/settings', join(folder, 'none'))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

testUnless(Bun.which('systemd-analyze') === null ? 'no systemd-analyze' : undefined)(
  'systemd understands every line',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'atoll-unit-'));
    try {
      for (const role of ['platform', 'control', 'node'] as const) {
        const file = join(folder, `${role}.service`);
        writeFileSync(file, unitText({ program: '/bin/true', role, dataDir: '/srv/at oll%x', namesDataDir: true }));
        const { exitCode, stderr } = Bun.spawnSync(['systemd-analyze', 'verify', '--man=no', file]);
        expect({ exitCode, said: stderr.toString().includes(file) }).toEqual({ exitCode: 0, said: false });
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
