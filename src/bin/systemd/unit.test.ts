import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isUnitOf, roleOf, unitsOf, unitText } from './unit.ts';

const text = (dataDir: string, role: Parameters<typeof unitText>[0]['role'] = 'platform') =>
  unitText({ program: '/bin/true', role, dataDir, namesDataDir: true });

test('what must hold for sandboxes to outlive the service is in the unit', () => {
  const lines = text('/srv/atoll').split('\n');
  for (const line of ['Type=notify', 'KillMode=process', 'Delegate=yes', 'ExecStart="/bin/true" up --service'])
    expect(lines).toContain(line);
  expect(lines).toContain('Environment=MIMALLOC_PURGE_DELAY=5000');
  // Each of these would give the service mounts of its own, or sandboxes a system call filter.
  expect(lines.filter(line => /^(Protect|Private|ReadOnly|SystemCall|NoNewPrivileges|Restrict)/.test(line))).toEqual(
    [],
  );
});

test('units of a cluster differ in what they start, and say it', () => {
  const platform = text('/srv/atoll');
  for (const role of ['control', 'node'] as const) {
    const unit = text('/srv/atoll', role);
    expect(unit).toBe(
      platform.replace('ExecStart="/bin/true" up --service', `ExecStart="/bin/true" ${role} --service`),
    );
    expect(roleOf(unit)).toBe(role);
  }
  expect(roleOf(platform)).toBe('platform');
  expect(roleOf('[Service]\nExecStart=/usr/bin/other\n')).toBeUndefined();
});

test('a path with spaces, quotes and specifiers is one value', () => {
  const lines = text('/srv/at "oll\\ %n $x').split('\n');
  expect(lines).toContain(String.raw`Environment="ATOLL_DATA_DIR=/srv/at \"oll\\ %%n $$x"`);
});

test('a unit is of the installation that its head names, whatever stands below', () => {
  expect(isUnitOf(text('/srv/atoll'), '/srv/atoll/settings')).toBe(true);
  expect(isUnitOf(text('/srv/atoll-2'), '/srv/atoll/settings')).toBe(false);
  expect(isUnitOf(text('/other/srv/atoll'), '/srv/atoll/settings')).toBe(false);
  expect(isUnitOf('[Unit]\n[Unit]\n# Settings: /srv/atoll/settings\n', '/srv/atoll/settings')).toBe(false);
});

test('only a data directory that was chosen is set by the unit', () => {
  const named = (namesDataDir: boolean) =>
    unitText({ program: '/bin/true', role: 'platform', dataDir: '/srv/atoll', namesDataDir });
  expect(named(true)).toContain('Environment="ATOLL_DATA_DIR=/srv/atoll"\n');
  expect(named(false)).not.toContain('ATOLL_DATA_DIR');
});

test('units of an installation are found among others, and none where there is no folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-units-'));
  try {
    for (const [name, dataDir] of Object.entries({
      'atoll.service': '/srv/atoll',
      'second.service': '/srv/second',
      'again.service': '/srv/atoll',
      'atoll.timer': '/srv/atoll',
    }))
      writeFileSync(join(folder, name), text(dataDir));
    expect(unitsOf('/srv/atoll/settings', folder).sort()).toEqual(['again', 'atoll']);
    expect(unitsOf('/srv/atoll/settings', join(folder, 'none'))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
