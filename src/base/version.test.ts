import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { platformVersion, worksWith } from './version.ts';

test('the version is that of the package', () => {
  const manifest = JSON.parse(readFileSync(join(import.meta.dir, '../../package.json'), 'utf8')) as { version: string };
  expect(platformVersion).toBe(manifest.version);
});

test('a release works with the minor releases beside its own, and with no other', () => {
  for (const other of ['1.4.0', '1.4.9', '1.3.7', '1.5.0', '1.5.0-rc.1']) expect(worksWith(other, '1.4.2')).toBe(true);
  for (const other of ['1.2.9', '1.6.0', '2.4.2', '0.4.2', '', 'main', '1.4'])
    expect(worksWith(other, '1.4.2')).toBe(false);
  expect(worksWith('main', 'main')).toBe(true);
});
