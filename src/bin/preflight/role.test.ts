import { afterAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServiceRole } from '../../cli/operator/install.ts';
import { requireRole } from './role.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-role-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The roles that are refused for a data directory with these files. */
function refused(...files: string[]): string[] {
  const dataDir = join(folder, crypto.randomUUID());
  mkdirSync(dataDir);
  for (const name of files) writeFileSync(join(dataDir, name), '');
  return (['platform', 'control', 'node'] as ServiceRole[]).filter(role => {
    try {
      requireRole(dataDir, role);
      return false;
    } catch (error) {
      expect(error).toMatchObject({ code: 'precondition', message: expect.stringContaining(dataDir) });
      return true;
    }
  });
}

test('a data directory has the role that it has begun with, and a new one none', () => {
  expect(refused()).toEqual([]);
  expect(refused('node-id', 'cluster-identity')).toEqual(['platform', 'control']);
  expect(refused('node-id', 'seed', 'api-key', 'installation.json')).toEqual(['control', 'node']);
  // Either a single machine has lost its facts, or this is control: the database knows.
  expect(refused('node-id', 'seed', 'api-key')).toEqual(['node']);
  // A first start that was interrupted.
  expect(refused('node-id', 'seed')).toEqual([]);
});

test('the refusal says what the directory is, and what starts it', () => {
  writeFileSync(join(folder, 'cluster-identity'), '');
  expect(() => requireRole(folder, 'platform')).toThrow(
    `${folder} is the data directory of a machine of a cluster, which \`atoll node\` starts. Set ATOLL_DATA_DIR to ` +
      'one for a machine alone. Nothing was changed.',
  );
});
