import { expect, test } from 'bun:test';
import { Gathered } from './gathered.ts';

test('parts come out as they went in, however they are taken', () => {
  const gathered = new Gathered();
  for (const part of ['ab', '', 'cde', 'f']) gathered.append(Buffer.from(part));
  expect(gathered.length).toBe(6);
  expect(gathered.take(3).toString()).toBe('abc');
  gathered.append(Buffer.from('ghi'));
  expect(gathered.bytes.toString()).toBe('defghi');
  expect(gathered.takeAll().toString()).toBe('defghi');
  expect(gathered.length).toBe(0);
});

test('bytes that were taken stay unchanged', () => {
  const gathered = new Gathered();
  const kept: Buffer[] = [];
  for (let i = 0; i < 1000; i++) {
    gathered.append(Buffer.from([i & 255]));
    gathered.append(Buffer.from([i & 255]));
    kept.push(gathered.take(1));
  }
  expect(kept.map(part => part[0])).toEqual(Array.from({ length: 1000 }, (_, i) => (i >> 1) & 255));
});

test('a part more costs no copy of all that are there', () => {
  const gathered = new Gathered();
  let rooms = 0;
  let room: ArrayBufferLike | undefined;
  for (let i = 0; i < 65_536; i++) {
    gathered.append(Buffer.from([1]));
    if (gathered.bytes.buffer !== room) rooms++;
    room = gathered.bytes.buffer;
  }
  expect(gathered.length).toBe(65_536);
  expect(rooms).toBeLessThan(32);
});
