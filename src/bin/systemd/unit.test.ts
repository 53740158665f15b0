import { expect, test } from 'bun:test';
import { unitText } from './unit.ts';

const text = (dataDir: string) => unitText({ program: '/bin/true', dataDir, namesDataDir: true });

test('what must hold for sandboxes to outlive the service is in the unit', () => {
  const lines = text('/srv/atoll').split('\n');
  for (const line of ['Type=notify', 'KillMode=process', 'Delegate=yes', 'ExecStart="/bin/true" up --service'])
    expect(lines).toContain(line);
  // Each would give the service mounts of its own, or sandboxes a filter of system calls.
  expect(lines.filter(line => /^(Protect|Private|ReadOnly|SystemCall|NoNewPrivileges|Restrict)/.test(line))).toEqual(
    [],
  );
});

test('a path with spaces, quotes and specifiers is one value', () => {
  const lines = text('/srv/at "oll\\ %n $x').split('\n');
  expect(lines).toContain(String.raw`Environment="ATOLL_DATA_DIR=/srv/at \"oll\\ %%n $$x"`);
});
