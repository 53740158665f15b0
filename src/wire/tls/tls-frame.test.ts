import { expect, test } from 'bun:test';
import { creditFrame, frameKinds, tlsFrame, TlsFrameReader } from './tls-frame.ts';

const sent = [
  tlsFrame(frameKinds.message, 0, 'a call'),
  tlsFrame(frameKinds.ping, 0),
  tlsFrame(frameKinds.data, 7, Buffer.alloc(60_000, 'x')),
  creditFrame(7, 65_536),
  tlsFrame(frameKinds.data, 7, 'y'),
  tlsFrame(frameKinds.end, 7),
];

/** What a reader makes of bytes that come in pieces of a given length, in one buffer that is used for all. */
function read(bytes: Buffer, pieceLength: number): Buffer[] | null {
  const reader = new TlsFrameReader();
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceLength) {
    const lent = Buffer.from(bytes.subarray(at, at + pieceLength));
    const isSound = reader.push(lent, ({ kind, stream, body }) => void found.push(tlsFrame(kind, stream, body)));
    lent.fill(0);
    if (!isSound) return null;
  }
  return found;
}

test('frames are the same, wherever the bytes are cut', () => {
  const bytes = Buffer.concat(sent);
  for (const length of [1, 2, 8, 9, 10, 15, 17, 1000, 60_009, 60_050, bytes.length])
    expect(read(bytes, length)).toEqual(sent);
});

test('an invalid frame is refused, even if its head comes in two pieces', () => {
  const wrong = Buffer.concat([...sent, tlsFrame(frameKinds.ping, 1)]);
  for (const length of [1, 5, wrong.length]) expect(read(wrong, length)).toBeNull();
});

test('a piece of a connection is no longer than 64 KiB, and not empty', () => {
  const data = (length: number) => tlsFrame(frameKinds.data, 7, Buffer.alloc(length));
  expect(read(data(65_536), 1_000_000)).toEqual([data(65_536)]);
  for (const length of [0, 65_537]) expect(read(data(length), 1_000_000)).toBeNull();
});
