import { expect, test } from 'bun:test';
import { readTerminalSearch } from './terminal-search.ts';

test('a search keeps what it knows, whoever wrote it', () => {
  const all = { shell: 1, beside: 2, watch: 300, cols: 80, rows: 24 };
  expect(readTerminalSearch(all)).toEqual(all);
  expect(readTerminalSearch({ shell: '1', beside: -2, watch: 1.5, cols: 80, rows: 1e9 })).toEqual({});
});
