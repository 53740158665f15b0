import { afterAll, expect, test } from 'bun:test';
import { chmodSync, copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runningProgram } from './own-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-program-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a program keeps starting as the running version, when its file is replaced or removed', async () => {
  const program = join(folder, 'program');
  copyFileSync('/bin/sh', program);
  chmodSync(program, 0o755);
  const child = Bun.spawn([program, '-c', 'echo started; read line'], { stdio: ['pipe', 'pipe', 'ignore'] });
  await child.stdout.getReader().read();
  expect(runningProgram(program, child.pid)).toBe(program);

  const version = () => Bun.spawnSync([runningProgram(program, child.pid), '-c', 'echo old']).stdout.toString();
  writeFileSync(`${program}.new`, '#!/bin/sh\necho new\n', { mode: 0o755 });
  renameSync(`${program}.new`, program);
  expect(version()).toBe('old\n');
  rmSync(program);
  expect(version()).toBe('old\n');
  child.kill();
  await child.exited;
});
