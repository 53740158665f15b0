import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';

const { coverageOf } = (await import(join(repository, 'scripts/test/coverage.mjs'))) as {
  coverageOf(root: string, folders: string[]): string | undefined;
};

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-coverage-'));
  mkdirSync(join(dir, 'src'));
  for (const name of ['a.ts', 'b.ts', 'c.ts', 'a.test.ts']) writeFileSync(join(dir, 'src', name), '');
  mkdirSync(join(dir, 'one'));
  writeFileSync(join(dir, 'one/lcov.info'), 'SF:src/a.ts\nDA:1,1\nDA:2,0\nend_of_record\nSF:src/a.test.ts\nDA:1,9\n');
  mkdirSync(join(dir, 'two'));
  writeFileSync(
    join(dir, 'two/lcov.info'),
    'SF:src/a.ts\nDA:1,0\nDA:2,3\nSF:src/b.ts\nDA:7,0\nDA:8,0\nSF:test/x.ts\nDA:1,1\n',
  );
});
afterAll(() => rmSync(dir, { recursive: true }));

test('a line counts once, and has run where any suite ran it', () => {
  expect(coverageOf(dir, [join(dir, 'one'), join(dir, 'two')])).toStartWith(
    'coverage: 50.0 % of the 4 lines of 2 files, of 3 in src,',
  );
});

test('nothing is said where nothing was measured', () => {
  expect(coverageOf(dir, [join(dir, 'none')])).toBeUndefined();
});
