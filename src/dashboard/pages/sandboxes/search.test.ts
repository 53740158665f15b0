import { expect, test } from 'bun:test';
import { isFiltered, readSandboxesSearch } from './search.ts';

test('a search keeps what it knows, whoever wrote it', () => {
  expect(readSandboxesSearch({ show: 'ended', template: 42, metadata: 'a=1', order: 'asc', x: {} })).toEqual({
    show: 'ended',
    template: '42',
    metadata: 'a=1',
    order: 'asc',
  });
  expect(readSandboxesSearch({ show: '<script>', template: ['a'], order: 'desc', metadata: '' })).toEqual({});
});

test('how long ago and on which node are known by their names', () => {
  expect(readSandboxesSearch({ since: '6h', node: 'n1' })).toEqual({ since: '6h', node: 'n1' });
  expect(readSandboxesSearch({ since: 'constructor', node: {} })).toEqual({});
  expect(isFiltered({ show: 'paused', order: 'asc' })).toBe(false);
  expect(isFiltered({ since: '6h' })).toBe(true);
});
