import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readIdentity } from './identity.ts';

let dataDir: string;
beforeEach(() => void (dataDir = join(mkdtempSync(join(tmpdir(), 'atoll-identity-')), 'a/b')));
afterEach(() => rmSync(join(dataDir, '../..'), { recursive: true }));

test('an installation keeps what it is for its whole life, for nobody else to read', () => {
  const first = readIdentity(dataDir);
  expect(readIdentity(dataDir)).toEqual(first);
  expect(first.seed).toHaveLength(32);
  expect(new Set([first.nodeId, first.adminToken, first.metricsToken]).size).toBe(3);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  for (const name of ['seed', 'admin-token', 'metrics-token'])
    expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600);
});

test('a damaged seed is not replaced: all tokens of sandboxes come of it', () => {
  const { seed } = readIdentity(dataDir);
  const hex = Buffer.from(seed).toString('hex');
  for (const text of ['', hex.slice(2), `${hex}00`, 'no hex digits']) {
    writeFileSync(join(dataDir, 'seed'), text);
    expect(() => readIdentity(dataDir)).toThrow(`${join(dataDir, 'seed')} is damaged`);
  }
  writeFileSync(join(dataDir, 'seed'), `${hex}\n`);
  expect(readIdentity(dataDir).seed).toEqual(seed);
});
