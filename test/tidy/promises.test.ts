import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';
import { promiseSentences, sentencesOf } from './promise-sentences.ts';
import { proofs } from './promises.ts';

// A test shows whatever the documents say without exception. A new sentence with *never*, *always*, *nothing* or *at
// most* needs its row in promises.ts: the test that would fail if it were untrue, or the reason why it is no promise.

const rowOf = (file: string, text: string) => proofs[file]?.find(([part]) => text.includes(part));

test('every sentence that promises something names the test that shows it', () => {
  const without = promiseSentences().filter(({ file, text }) => !rowOf(file, text));
  expect(without, 'give each of these a row in test/tidy/promises.ts, or say it otherwise').toEqual([]);
});

test('every row belongs to a sentence, and names a test that is there', () => {
  const sentences = promiseSentences();
  const wrong = Object.entries(proofs).flatMap(([file, rows]) =>
    rows.flatMap(row => {
      const [part, path, name] = row;
      const isSaid = sentences.some(({ file: its, text }) => its === file && rowOf(file, text) === row);
      if (!isSaid) return [`${file}: nobody says any more: ${part}`];
      if (path === null) return [];
      const full = join(repository, path);
      return existsSync(full) && name !== '' && readFileSync(full, 'utf8').includes(name)
        ? []
        : [`${path} has no test '${name}'`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('sentences are found across lines, in lists and in cells, and not in code', () => {
  const text = 'It is\nnever so. Or is it?\n\n- One `a`. Two\n  lines.\n\n| a | nothing |\n\n```\nnever\n```\n';
  expect(sentencesOf(text)).toEqual(['It is never so.', 'Or is it?', 'One `a`.', 'Two lines.', 'a', 'nothing']);
});
