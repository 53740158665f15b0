import { expect, test } from 'bun:test';
import { AtollError, messageOf } from '../../../base/error.ts';
import { explained } from './debian-tree.ts';

test('the error about mirrors that do not answer is a sentence that says what to do', () => {
  const said = [
    'mmdebstrap failed (exit code 25):',
    "  Temporary failure resolving 'deb.debian.org'",
    "E: Failed to fetch http://deb.debian.org/dists/bookworm/InRelease  Temporary failure resolving 'deb.debian.org'",
    'E: Some index files failed to download. They have been ignored, or old ones used instead.',
  ];
  const error = explained(new AtollError('internal', said.join('\n')));
  expect(messageOf(error)).toStartWith("The packages of the base template can't be had from the mirrors");
  expect(messageOf(error)).toContain('InRelease  Temporary failure resolving');
  expect(messageOf(error)).toContain('ATOLL_BASE_IMAGE');
  expect(messageOf(error)).not.toContain('\n');
  const other = new Error('mmdebstrap failed (exit code 1):\nE: mount failed');
  expect(explained(other)).toBe(other);
});
