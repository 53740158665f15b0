import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runToEnd } from '../support/process.ts';
import type { Refused } from './support/refuse-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-refused-'));
afterAll(() => rmSync(folder, { recursive: true }));

// The kernel considers data written that a disk has refused, and what SQLite keeps behind it is worthless.
test('what a database has answered is there, although the disk refused what was written before it', async () => {
  const program = [process.execPath, join(import.meta.dir, 'support/refuse-log.ts'), folder];
  const { stdout, ...ended } = await runToEnd(['unshare', '--mount', '--propagation', 'private', ...program]);
  expect(ended).toMatchObject({ exitCode: 0 });
  const { answers, gaveUp, words } = JSON.parse(stdout) as Refused;
  expect(answers).toEqual(['ready', 'kept', expect.stringContaining('EIO'), 'kept']);
  expect(gaveUp).toBe(false);
  expect(words).toEqual(expect.arrayContaining(['before', 'after', 'last']));
}, 120_000);
