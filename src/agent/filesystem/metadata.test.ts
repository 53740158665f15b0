import { expect, test } from 'bun:test';
import type { Native } from '../native.ts';
import { metadataOf, readMetadata, replaceMetadata } from './metadata.ts';

/** A file system that keeps attributes for its one file, or none at all. */
function fileWith(attributes: Record<string, string>, keeps = true) {
  const kept = new Map(Object.entries(attributes));
  let tried = 0;
  const native = {
    attributes: () => kept,
    setAttribute(_: number, name: string, value: string) {
      tried++;
      if (keeps) kept.set(name, value);
      return keeps;
    },
    removeAttribute: (_: number, name: string) => void kept.delete(name),
  } as unknown as Native;
  return { native, kept: () => Object.fromEntries(kept), tried: () => tried };
}

test('metadata are the attributes of clients, and none where there are none', () => {
  const { native } = fileWith({ 'user.e2b.a': '1', 'user.e2b.__proto__': '2', 'user.other': '3' });
  const metadata = readMetadata(native, 3) ?? {};
  expect(new Map(Object.entries(metadata))).toEqual(new Map(Object.entries({ a: '1', ['__proto__']: '2' })));
  expect(readMetadata(fileWith({ 'user.other': '3' }).native, 3)).toBeUndefined();
});

test('the metadata of a file is replaced as a whole, and other attributes stay', () => {
  const { native, kept } = fileWith({ 'user.e2b.old': '1', 'user.e2b.same': '2', 'user.other': '3' });
  replaceMetadata(native, 3, { same: '4', new: '5' });
  expect(kept()).toEqual({ 'user.e2b.same': '4', 'user.e2b.new': '5', 'user.other': '3' });
  const inherited = fileWith({ 'user.e2b.constructor': '1' });
  replaceMetadata(inherited.native, 3, {});
  expect(inherited.kept()).toEqual({});
});

test('a file system that keeps none is asked once', () => {
  const { native, kept, tried } = fileWith({}, false);
  replaceMetadata(native, 3, { a: '1', b: '2' });
  expect([kept(), tried()]).toEqual([{}, 1]);
});

const header = (key: string) => `x-metadata-${key}`;
const invalid = (message: string) =>
  expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) });

test('headers say what an upload carries', () => {
  const headers = new Headers({ [header('A')]: 'one two', [header('b')]: '', accept: 'x', 'metadata-c': 'x' });
  expect(metadataOf(headers)).toEqual({ a: 'one two', b: '' });
  expect(Object.entries(metadataOf(new Headers({ [header('__proto__')]: 'x' })))).toEqual([['__proto__', 'x']]);
});

test('keys have up to 246 bytes, and values are printable', () => {
  const of = (key: string, value: string) => metadataOf(new Headers({ [header(key)]: value }));
  expect(Object.keys(of('k'.repeat(246), ' ~'))).toEqual(['k'.repeat(246)]);
  for (const key of ['', 'k'.repeat(247)]) expect(() => of(key, 'x')).toThrow(invalid('1 to 246 bytes'));
  for (const value of ['a\tb', 'a\x7fb', 'a\xe9b']) expect(() => of('k', value)).toThrow(invalid('printable ASCII'));
});

test('all of it has up to 4096 bytes, names with their prefix included', () => {
  const of = (bytes: number) => metadataOf(new Headers({ [header('a')]: 'x', [header('b')]: 'x'.repeat(bytes) }));
  const around = 2 * 'user.e2b.k'.length + 1;
  expect(Object.keys(of(4096 - around))).toEqual(['a', 'b']);
  expect(() => of(4097 - around)).toThrow(invalid('takes 4097 bytes, more than 4096'));
});
