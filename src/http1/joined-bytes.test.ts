import { expect, test } from 'bun:test';
import { JoinedBytes } from './joined-bytes.ts';

test('pieces come to one text, and what was answered before does not change', () => {
  const joined = new JoinedBytes();
  const text = Array.from({ length: 5000 }, (_, i) => String.fromCharCode(97 + (i % 26))).join('');
  let all: Buffer = Buffer.from('');
  const earlier: [Buffer, string][] = [];
  for (const letter of text) {
    all = joined.join(all, Buffer.from(letter));
    if (all.length % 500 === 0) earlier.push([all, text.slice(0, all.length)]);
  }
  expect(all.toString()).toBe(text);
  for (const [view, was] of earlier) expect(view.toString()).toBe(was);
});

test('a piece byte by byte moves to new room a few times and not each time', () => {
  const joined = new JoinedBytes();
  const rooms = new Set<ArrayBufferLike>();
  let all: Buffer = Buffer.from('');
  for (let i = 0; i < 65_536; i++) {
    all = joined.join(all, Buffer.from('a'));
    rooms.add(all.buffer);
  }
  expect(rooms.size).toBeLessThan(10);
});

test('what begins elsewhere, or was cut at its beginning, is joined all the same', () => {
  const joined = new JoinedBytes();
  const one = joined.join(Buffer.from('ab'), Buffer.from('cd'));
  expect(joined.join(one.subarray(2), Buffer.from('ef')).toString()).toBe('cdef');
  expect(joined.join(Buffer.from('x'), Buffer.from('y')).toString()).toBe('xy');
  joined.forget();
  expect([one.toString(), joined.join(one, Buffer.from('!')).toString()]).toEqual(['abcd', 'abcd!']);
});
