import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { platformVersion } from './version.ts';

test('the version is that of the package', () => {
  const manifest = JSON.parse(readFileSync(join(import.meta.dir, '../../package.json'), 'utf8')) as { version: string };
  expect(platformVersion).toBe(manifest.version);
});
