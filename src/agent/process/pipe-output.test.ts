import { expect, test } from 'bun:test';
import { closeSync, fstatSync, writeSync } from 'node:fs';
import { openNative, type Native } from '../native.ts';
import { briefly, pipeReader, type OutputReader } from './pipe-output.ts';

const native = openNative();

/** A pipe that is being read, and what was read of it without a request so far. */
function pipe(brief: Promise<void>) {
  const [readEnd, writeEnd] = native.pipe();
  const now: (number | undefined)[] = [];
  const watched: Pick<Native, 'neverWait' | 'mayWait' | 'readNow'> = {
    neverWait: fd => native.neverWait(fd),
    mayWait: fd => native.mayWait(fd),
    readNow(fd) {
      const bytes = native.readNow(fd);
      now.push(bytes?.length);
      return bytes;
    },
  };
  return { reader: pipeReader(readEnd, brief, watched), readEnd, writeEnd, now };
}

async function textOf(reader: OutputReader, untilBytes = Infinity): Promise<string> {
  const parts: Uint8Array[] = [];
  while (parts.reduce((sum, { length }) => sum + length, 0) < untilBytes) {
    const { value, done } = await reader.read();
    if (done) break;
    if (value) parts.push(value);
  }
  return Buffer.concat(parts).toString();
}

const isOpen = (fd: number) => {
  try {
    return fstatSync(fd).isFIFO();
  } catch {
    return false; // EBADF
  }
};

test('what a program that is over at once has said is read by itself, to its end', async () => {
  const ended = Promise.withResolvers<void>();
  const { reader, readEnd, writeEnd, now } = pipe(briefly(ended.promise));
  writeSync(writeEnd, 'said');
  closeSync(writeEnd);
  const text = textOf(reader);
  expect(now).toEqual([]);
  ended.resolve();
  expect(await text).toBe('said');
  expect([now, isOpen(readEnd)]).toEqual([[4, 0], false]);
  expect(await reader.read()).toEqual({ done: true });
});

test('output of a program that goes on is heard as it comes', async () => {
  const { reader, readEnd, writeEnd, now } = pipe(briefly(Promise.withResolvers().promise));
  writeSync(writeEnd, 'early ');
  expect(await textOf(reader, 6)).toBe('early ');
  const late = textOf(reader, 4);
  while (isOpen(readEnd)) await Bun.sleep(1);
  writeSync(writeEnd, 'late');
  expect([await late, now]).toEqual(['late', [6, undefined]]);
  closeSync(writeEnd);
  expect((await reader.read()).done).toBeTrue();
});

test('a program that writes without end takes turns with all others', async () => {
  const { reader, readEnd, writeEnd, now } = pipe(Promise.resolve());
  for (let piece = 0; piece < 20; piece++) {
    writeSync(writeEnd, 'more');
    expect(await textOf(reader, 4)).toBe('more');
  }
  expect([now.length, isOpen(readEnd)]).toEqual([17, false]);
  closeSync(writeEnd);
  expect(await textOf(reader)).toBe('');
});

test('children that hold the output of a program that has ended are waited for', async () => {
  const { reader, writeEnd } = pipe(briefly(Promise.resolve()));
  const text = textOf(reader);
  await Bun.sleep(0);
  writeSync(writeEnd, 'a child');
  closeSync(writeEnd);
  expect(await text).toBe('a child');
});

test('no piece of a long output has a buffer larger than a pipe, which the allocator would keep', async () => {
  const { reader, writeEnd } = pipe(Promise.resolve());
  const head = Bun.spawn(['head', '-c', String(64 << 20), '/dev/zero'], { stdout: writeEnd });
  closeSync(writeEnd);
  let bytes = 0;
  let largest = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done || !value) break;
    bytes += value.length;
    largest = Math.max(largest, value.buffer.byteLength);
  }
  expect([bytes, largest <= 64 << 10, await head.exited]).toEqual([64 << 20, true, 0]);
});
