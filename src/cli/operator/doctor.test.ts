import { expect, test } from 'bun:test';
import type { HostFinding } from '../../protocol/doctor.ts';
import { doctorCommand } from './doctor.ts';

const findings: HostFinding[] = [
  { name: 'kernel', status: 'ok', detail: '6.18', needed: true },
  { name: 'CRIU', status: 'missing', detail: 'not installed', needed: false, remedy: 'Install it.' },
];

async function report(found: HostFinding[], ...args: string[]) {
  let out = '';
  const code = await doctorCommand(async () => found).run(args, {
    isInteractive: false,
    out: text => void (out += text),
    err: () => {},
  });
  return { code, out };
}

test('a missing optional part does not fail', async () => {
  const { code, out } = await report(findings);
  expect(code).toBe(0);
  expect(out).toContain('→ Install it.');
  expect(out).toContain('none was run');
});

test('that sandboxes can run is said only where one did', async () => {
  const { code, out } = await report([...findings, { name: 'a sandbox', status: 'ok', detail: '-', needed: true }]);
  expect(code).toBe(0);
  expect(out).toContain('Sandboxes can run here: one just did.');
});

test('a missing required part fails and is named', async () => {
  const { code, out } = await report([...findings, { name: 'EROFS', status: 'missing', detail: '-', needed: true }]);
  expect(code).toBe(1);
  expect(out).toContain('before this is mended: EROFS');
});

test('--json gives the findings', async () => {
  expect(JSON.parse((await report(findings, '--json')).out)).toEqual(findings);
});
