import { expect, test } from 'bun:test';
import { csvOf } from './csv.ts';

test('cells are quoted where they must be, and no text becomes a formula', () => {
  const rows = [
    ['a,"b"', 1.5, null],
    ['=HYPERLINK("http://x")', -2, true],
    ['two\nlines', undefined, '-2'],
  ];
  expect(csvOf(['one', 'two', 'three'], rows)).toBe(
    'one,two,three\r\n"a,""b""",1.5,\r\n"\'=HYPERLINK(""http://x"")",-2,true\r\n"two\nlines",,\'-2\r\n',
  );
});
