import { expect, test } from 'bun:test';
import { patternOf, readLogsSearch } from './logs-search.ts';

test('a search keeps what it knows, whoever wrote it', () => {
  const all = { level: 'warn', logger: 'network', find: 'a.*b', regex: true, at: 1_700_000_000_000 };
  expect(readLogsSearch(all)).toEqual(all as ReturnType<typeof readLogsSearch>);
  expect(readLogsSearch({ level: 'loud', logger: {}, find: '', regex: 'no', at: -1 })).toEqual({});
  // Numbers in a URL are read as such; here they are text.
  expect(readLogsSearch({ find: 404 })).toEqual({ find: '404' });
});

test('a pattern is found in any case, and what is none says so', () => {
  expect(patternOf('port \\d+$')?.test('Listens on PORT 80')).toBe(true);
  expect(patternOf('(')).toBeNull();
});
