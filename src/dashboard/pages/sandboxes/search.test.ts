import { expect, test } from 'bun:test';
import { readSandboxesSearch } from './search.ts';

test('a search keeps what it knows, whoever wrote it', () => {
  expect(readSandboxesSearch({ show: 'ended', template: 42, metadata: 'a=1', order: 'asc', x: {} })).toEqual({
    show: 'ended',
    template: '42',
    metadata: 'a=1',
    order: 'asc',
  });
  expect(readSandboxesSearch({ show: '<script>', template: ['a'], order: 'desc', metadata: '' })).toEqual({});
});
