import { expect, test } from 'bun:test';
import { isReport } from './reports.ts';

test('what a terminal answers to programs is told from what people type', () => {
  const answers = ['\x1b[1;1R', '\x1b[?1;2c', '\x1b[>0;276;0c', '\x1b[0n', '\x1b[8;24;80t', '\x1b[?2004;1$y'];
  const long = ['\x1b]11;rgb:0000/0000/0000\x1b\\', '\x1b]10;rgb:ffff/ffff/ffff\x07', '\x1bP1$r0m\x1b\\'];
  expect([...answers, ...long].filter(text => !isReport(text))).toEqual([]);
  const typed = [
    'a',
    '\r',
    '\x03',
    '\x1b',
    '\x1b[A',
    '\x1bOP',
    '\x1b[3~',
    '\x1b[1;5C',
    'echo 1;1R',
    '\x1b[200~R\x1b[201~',
  ];
  expect(typed.filter(isReport)).toEqual([]);
});
