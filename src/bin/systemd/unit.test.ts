import { expect, test } from 'bun:test';
import { roleOf, unitText } from './unit.ts';

const text = (dataDir: string, role: Parameters<typeof unitText>[0]['role'] = 'platform') =>
  unitText({ program: '/bin/true', role, dataDir, namesDataDir: true });

test('what must hold for sandboxes to outlive the service is in the unit', () => {
  const lines = text('/srv/atoll').split('\n');
  for (const line of ['Type=notify', 'KillMode=process', 'Delegate=yes', 'ExecStart="/bin/true" up --service'])
    expect(lines).toContain(line);
  // Each would give the service mounts of its own, or sandboxes a filter of system calls.
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
