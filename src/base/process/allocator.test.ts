import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { allocatorSettings } from './allocator.ts';

test('a checkout’s program tells the allocator the same as the supervisor tells its parts', () => {
  const program = readFileSync(join(import.meta.dir, '../../../bin/atoll'), 'utf8');
  const [, exported = ''] = /^export (MIMALLOC.*)$/m.exec(program) ?? [];
  expect(Object.fromEntries(exported.split(' ').map(setting => setting.split('=')))).toEqual(allocatorSettings);
});
