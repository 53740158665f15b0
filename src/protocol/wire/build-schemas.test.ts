import { expect, test } from 'bun:test';
import type { TSchema } from '@sinclair/typebox';
import { progressBounds } from '../build.ts';
import { Progress } from './build-schemas.ts';
import { readerOf, Wrong } from './read.ts';

const schema: TSchema = Progress;
const read = readerOf(schema);
const many = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);

test('a machine reports no more lines and steps of a build at a time than readers accept', () => {
  const line = { timestampMs: 1, level: 'info', message: 'x' };
  const step = { key: 'k', layer: null };
  const progress = { entries: many(progressBounds.entries, line), next: 1, made: many(progressBounds.made, step) };
  expect(read(progress)).toEqual(progress);
  for (const [changes, path] of [
    [{ made: many(progressBounds.made + 1, step) }, '.made'],
    [{ entries: many(progressBounds.entries + 1, line) }, '.entries'],
    [{ entries: [{ ...line, message: 'x'.repeat(progressBounds.messageCharacters + 1) }] }, '.entries.0.message'],
  ] as const) {
    const wrong = read({ ...progress, ...changes });
    expect(wrong).toBeInstanceOf(Wrong);
    expect(wrong).toMatchObject({ path });
  }
});
