import { expect, test } from 'bun:test';
import { FrameReader, closeFrame, maskedFrame, opcode, shortFrame, writeFrameHead } from './websocket-frames.ts';

/** A frame as clients send it. */
function masked(code: number, payload: Buffer, { final = true, mask = Buffer.from([1, 2, 3, 4]) } = {}): Buffer {
  const head = Buffer.alloc(10);
  const length = writeFrameHead(head, code, payload.length);
  head[0] = (final ? 0x80 : 0) | code;
  head[1] = (head[1] as number) | 0x80;
  const body = Buffer.from(payload.map((byte, index) => byte ^ (mask[index & 3] as number)));
  return Buffer.concat([head.subarray(0, length), mask, body]);
}

/** What a reader makes of frames that arrive in pieces of `size` bytes. */
function heard(
  bytes: Buffer,
  size: number,
  from: 'client' | 'server' = 'client',
): { heard: string[]; isWhole: boolean } {
  const heard: string[] = [];
  const parts: Buffer[] = [];
  const reader = new FrameReader(
    {
      data: part => void parts.push(Buffer.from(part)),
      messageEnd: isText =>
        void heard.push(`${isText ? 'text' : 'binary'} ${Buffer.concat(parts.splice(0)).toString()}`),
      control: (code, payload) => void heard.push(`${code} ${payload.toString('hex')}`),
    },
    from,
  );
  for (let at = 0; at < bytes.length; at += size)
    if (!reader.take(Buffer.from(bytes.subarray(at, at + size)), 0)) return { heard, isWhole: false };
  return { heard, isWhole: true };
}

test('messages, fragments and control frames are the same however they are cut', () => {
  const long = 'x'.repeat(70_000);
  const bytes = Buffer.concat([
    masked(opcode.binary, Buffer.from('short')),
    masked(opcode.binary, Buffer.from('frag'), { final: false }),
    masked(opcode.ping, Buffer.from('?')),
    masked(opcode.continuation, Buffer.from('ment'), { final: false, mask: Buffer.from([9, 8, 7, 6]) }),
    masked(opcode.continuation, Buffer.from('ed')),
    masked(opcode.text, Buffer.alloc(0)),
    masked(opcode.binary, Buffer.from('y'.repeat(300))),
    masked(opcode.binary, Buffer.from(long)),
    masked(opcode.close, Buffer.from([3, 0xe8])),
  ]);
  const expected = [
    'binary short',
    `${opcode.ping} 3f`,
    'binary fragmented',
    'text ',
    `binary ${'y'.repeat(300)}`,
    `binary ${long}`,
    `${opcode.close} 03e8`,
  ];
  for (const size of [1, 2, 3, 7, 13, 64, 1000, 1_000_000])
    expect(heard(bytes, size)).toEqual({ heard: expected, isWhole: true });
});

test('frames that a client must not send are refused', () => {
  const plain = masked(opcode.binary, Buffer.from('x'));
  const changed = (at: number, byte: number) =>
    Buffer.concat([plain.subarray(0, at), Buffer.of(byte), plain.subarray(at + 1)]);
  for (const [what, bytes] of Object.entries({
    'no mask': shortFrame(opcode.binary, Buffer.from('x')),
    'reserved bits': changed(0, 0xc2),
    'an unknown opcode': changed(0, 0x83),
    'an unknown control frame': changed(0, 0x8b),
    'a control frame in parts': masked(opcode.ping, Buffer.alloc(1), { final: false }),
    'a long control frame': masked(opcode.ping, Buffer.alloc(126)),
    'a continuation of nothing': masked(opcode.continuation, Buffer.alloc(1)),
    'a message within another': Buffer.concat([
      masked(opcode.binary, Buffer.alloc(1), { final: false }),
      masked(opcode.binary, Buffer.alloc(1)),
    ]),
    'a length that no number holds': Buffer.concat([Buffer.from([0x82, 0xff]), Buffer.alloc(8, 0xff), Buffer.alloc(4)]),
  }))
    for (const size of [1, 100]) expect([what, heard(bytes, size).isWhole]).toEqual([what, false]);
});

test('lengths are sent in the shortest form', () => {
  const head = Buffer.alloc(10);
  for (const [length, bytes] of [
    [0, '8200'],
    [125, '827d'],
    [126, '827e007e'],
    [65_535, '827effff'],
    [65_536, '827f0000000000010000'],
  ] as const)
    expect(head.toString('hex', 0, writeFrameHead(head, opcode.binary, length))).toBe(bytes);
  expect(closeFrame(1002).toString('hex')).toBe('880203ea');
});

test('a client’s frames are unmasked, and a server’s are read without a mask', () => {
  for (const length of [0, 1, 200, 70_000]) {
    const payload = Buffer.from(crypto.getRandomValues(new Uint8Array(Math.min(length, 65_536)))).fill(7, 100);
    expect(heard(maskedFrame(opcode.binary, payload), 1000)).toEqual({
      heard: [`binary ${payload.toString()}`],
      isWhole: true,
    });
    expect(heard(shortFrame(opcode.ping, payload.subarray(0, 9)), 3, 'server').heard).toEqual([
      `${opcode.ping} ${payload.subarray(0, 9).toString('hex')}`,
    ]);
  }
  expect(heard(maskedFrame(opcode.binary), 1, 'server').isWhole).toBe(false);
});
