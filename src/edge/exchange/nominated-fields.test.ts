import { expect, test } from 'bun:test';
import { RequestHead } from '../../http1/request-head.ts';
import { nominatedFields } from './nominated-fields.ts';

function nominated(...values: string[]): string[] | null {
  const head = new RequestHead(32);
  const lines = values.map(value => `Connection: ${value}\r\n`).join('');
  const bytes = Buffer.from(`GET / HTTP/1.1\r\nHost: x\r\n${lines}\r\n`);
  expect(head.parse(bytes, 0, bytes.length)).toBe(bytes.length);
  const names = nominatedFields(head.fields);
  return names === null ? null : [...names];
}

test('fields that Connection names, in any case and on any line, do not pass', () => {
  expect(nominated('X-One')).toEqual(['x-one']);
  expect(nominated('close ,  X-One', 'x-Two,keep-alive')).toEqual(['x-one', 'x-two']);
});

test.each([[], ['close'], ['Keep-Alive'], ['upgrade'], [''], ['keep-alive, Upgrade'], ['close', 'close,,']])(
  'options alone name no field: %p',
  (...values) => {
    expect(nominated(...values)).toBeNull();
  },
);

test('nobody strips what decides about a message by naming it', () => {
  expect(nominated('Host, Content-Length, Transfer-Encoding, Expect')).toBeNull();
  expect(nominated('Host, X-One')).toEqual(['x-one']);
});
