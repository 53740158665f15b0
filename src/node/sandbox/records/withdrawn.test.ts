import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openWithdrawn } from './withdrawn.ts';

test('withdrawn executions are refused for a day, by the next process too, and their number is limited', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-withdrawn-'));
  try {
    let nowMs = 0;
    const first = openWithdrawn(folder, () => nowMs);
    first.add('early');
    nowMs += 3_600_000;
    first.add('late');
    const second = openWithdrawn(folder, () => nowMs);
    for (const executionId of ['early', 'late'])
      expect(() => second.require(executionId)).toThrow(expect.objectContaining({ code: 'conflict' }));
    expect(() => second.require('other')).not.toThrow();
    nowMs += 23.5 * 3_600_000;
    second.add('latest');
    expect(() => second.require('early')).not.toThrow();
    expect(() => second.require('late')).toThrow('too late');
    for (let number = 0; number < 2_048; number++) second.add(`${number}`);
    expect(() => second.require('late')).not.toThrow();
    expect(() => second.require('0')).toThrow('too late');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
