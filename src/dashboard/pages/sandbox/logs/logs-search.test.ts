import { expect, test } from 'bun:test';
import { patternOf, readLogsSearch } from './logs-search.ts';

test('a search keeps what it knows, whoever wrote it', () => {
  const all = { level: 'warn', logger: 'network', find: 'a.*b', regex: true, at: 1_700_000_000_000 };
  expect(readLogsSearch(all)).toEqual(all as ReturnType<typeof readLogsSearch>);
  expect(readLogsSearch({ level: 'loud', logger: {}, find: '', regex: 'no', at: -1 })).toEqual({});
  // Numbers in a URL are parsed as such; here they are text.
  expect(readLogsSearch({ find: 404 })).toEqual({ find: '404' });
});

test('a pattern is found in any case, and what is none says so', () => {
  expect(patternOf('port \\d+$')?.test('Listens on PORT 80')).toBe(true);
  expect(patternOf('(')).toBeNull();
});

test('switches of a URL are what they say, as values or as words, and places of entries begin at 1', () => {
  for (const [name, on] of [
    ['regex', true],
    ['wrap', false],
  ] as const) {
    for (const value of [on, String(on)]) expect(readLogsSearch({ [name]: value })).toEqual({ [name]: on });
    for (const value of [!on, String(!on), '', 1, null]) expect(readLogsSearch({ [name]: value })).toEqual({});
  }
  for (const at of [1, 2 ** 53 - 1]) expect(readLogsSearch({ at })).toEqual({ at });
  for (const at of [0, -1, 1.5, 2 ** 53, '1']) expect(readLogsSearch({ at })).toEqual({});
});
