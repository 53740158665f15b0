import { afterAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ownInstallation } from './ending.ts';
import { readSettings } from './settings/settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-ending-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a control process has no sandboxes to end, and a first start of one machine may have', () => {
  const dataDir = mkdtempSync(join(folder, 'control-'));
  writeFileSync(join(dataDir, 'seed'), '');
  const own = ownInstallation(() => readSettings({ ATOLL_DATA_DIR: dataDir }));
  expect(own.hasSandboxes()).toBe(false);
  mkdirSync(join(dataDir, 'node'));
  expect(own.hasSandboxes()).toBe(true);
});

test('what a first start, or a machine of a cluster, has begun is an installation that can be ended', () => {
  for (const [name, isThere] of [
    ['seed', true],
    ['api-key', true],
    ['cluster-identity', true],
    ['node-id', true],
    ['settings', false],
  ] as const) {
    const dataDir = join(folder, name);
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, name), '{}');
    const own = ownInstallation(() => readSettings({ ATOLL_DATA_DIR: dataDir }));
    expect({ name, isThere: own.isThere() }).toEqual({ name, isThere });
    if (isThere) own.require();
    else expect(() => own.require()).toThrow('There is no installation');
  }
});
