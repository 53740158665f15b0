import { expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../../support/platform.ts';
import { suites } from './suites.ts';

test('the suites that guests run are there', () => {
  expect(suites.length).toBeGreaterThan(0);
  expect(suites.filter(suite => !existsSync(join(repository, suite)))).toEqual([]);
});
