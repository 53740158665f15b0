import { expect, test } from 'bun:test';
import { tableOf } from './table-of.ts';

test('separated values are rows of cells, whatever is quoted', () => {
  const text = 'name,says\r\n"Zoë, B.","a ""word""\nand more"\n,last';
  expect(tableOf('/a/people.CSV', text)).toEqual({
    rows: [
      ['name', 'says'],
      ['Zoë, B.', 'a "word"\nand more'],
      ['', 'last'],
    ],
    more: false,
  });
  expect(tableOf('x.tsv', 'a\tb,c\n')).toEqual({ rows: [['a', 'b,c']], more: false });
  expect(tableOf('x.csv', '')).toEqual({ rows: [], more: false });
  // Quotes inside a cell, and a lone half of a line end, are ordinary characters.
  expect(tableOf('x.csv', 'a"b",c\rd')?.rows).toEqual([['a"b"', 'c\rd']]);
  expect(tableOf('x.csv', '"a\r\nb",')?.rows).toEqual([['a\r\nb', '']]);
  expect(tableOf('main.py', 'a,b')).toBeNull();
});

test('only the beginning of a long table is shown', () => {
  const long = tableOf('x.csv', 'a,b\n'.repeat(5_000));
  expect({ rows: long?.rows.length, more: long?.more }).toEqual({ rows: 1_000, more: true });
  const whole = tableOf('x.csv', 'a,b\n'.repeat(1_000));
  expect({ rows: whole?.rows.length, more: whole?.more }).toEqual({ rows: 1_000, more: false });
  const open = tableOf('x.csv', `${'a,b\n'.repeat(1_000)}a`);
  expect({ rows: open?.rows.length, more: open?.more }).toEqual({ rows: 1_000, more: true });
  expect(tableOf('x.csv', ','.repeat(1_000))?.rows[0]?.length).toBe(50);
});
