import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRunsc } from './find-runsc.ts';

const directory = mkdtempSync(join(tmpdir(), 'atoll-runsc-'));
afterAll(() => rmSync(directory, { recursive: true }));
const written = (facts: object) => writeFileSync(join(directory, 'runsc.json'), JSON.stringify(facts));

test('what set-up has found is found, and why it has found none', () => {
  expect(findRunsc(undefined)).toMatchObject({ found: false });
  expect(findRunsc(directory)).toMatchObject({ found: false, reason: expect.stringContaining('npm run up') });
  written({ program: null, version: null, source: null, reason: 'no mirror' });
  expect(findRunsc(directory)).toEqual({ found: false, reason: 'no mirror' });
  written({ program: 'runsc', version: '1', source: 'Debian' });
  expect(findRunsc(directory)).toEqual({
    found: true,
    program: join(directory, 'runsc'),
    version: '1',
    source: 'Debian',
  });
});
