import { expect, test } from 'bun:test';
import { octalMode } from './mode.ts';

test('a mode as it is shown becomes the number that sets it', () => {
  expect(['-rw-r--r--', 'drwxr-xr-x', '----------', '-rwsr-xr-x', 'drwxrwxrwt', 'Lrwxrwxrwx'].map(octalMode)).toEqual([
    '644',
    '755',
    '000',
    '4755',
    '1777',
    '777',
  ]);
  expect(['', 'rw-', '-rw-r--r-?'].map(octalMode)).toEqual(['', '', '']);
});
