import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepInHistory } from './history.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-history-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('runs are kept, newest first, under one title', () => {
  const file = join(folder, 'history.md');
  for (const commit of ['first', 'second', 'third']) keepInHistory(file, commit, `figures of ${commit}\n`);
  const text = readFileSync(file, 'utf8');
  expect(text.match(/^# .*$/gm)).toEqual(['# Whole runs of the bench']);
  expect(text.match(/^## .*$/gm)).toEqual(['## third', '## second', '## first']);
  expect(text).toEndWith('## first\nfigures of first\n');
});
