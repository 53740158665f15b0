import { afterEach, expect, test } from 'bun:test';
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeFile, connectTo, filePair, peerOf, receiveFile, sendFile, streamPair } from './files.ts';

const opened: number[] = [];
afterEach(() => {
  for (const file of opened.splice(0)) closeFile(file);
});

/** Two ends, closed after the test. */
function ends(make = filePair): [number, number] {
  const pair = make();
  opened.push(...pair);
  return pair;
}
function file(): number {
  const fd = openSync('/dev/zero', 'r');
  opened.push(fd);
  return fd;
}
const isOpen = (fd: number) => {
  try {
    return fstatSync(fd) !== undefined;
  } catch {
    return false; // closed
  }
};

test('an open file arrives with its number, and the sender keeps its own', () => {
  const [left, right] = ends();
  const [sent, other] = [file(), file()];
  expect([sendFile(left, sent, 7), sendFile(left, other, 0xffff_ffff)]).toEqual(['sent', 'sent']);
  const got = [receiveFile(right), receiveFile(right)];
  expect(got).toEqual([
    { file: expect.any(Number), id: 7 },
    { file: expect.any(Number), id: 0xffff_ffff },
  ]);
  for (const one of got) {
    const { file: mine } = one as { file: number };
    opened.push(mine);
    expect([fstatSync(mine).rdev, mine === sent]).toEqual([fstatSync(sent).rdev, false]);
    // Programs that this process starts don't inherit it.
    expect(readFileSync(`/proc/self/fdinfo/${mine}`, 'utf8')).toMatch(/^flags:\s+02\d{6}$/m);
  }
  expect(isOpen(sent)).toBe(true);
});

test('nothing blocks: there is no file, or no room', () => {
  const [left, right] = ends();
  expect(receiveFile(right)).toBe('none');
  const sent = file();
  let count = 0;
  while (sendFile(left, sent, count) === 'sent') expect(count++).toBeLessThan(10_000);
  expect(sendFile(left, sent, count)).toBe('full');
  const first = receiveFile(right) as { file: number; id: number };
  opened.push(first.file);
  expect([first.id, sendFile(left, sent, count)]).toEqual([0, 'sent']);
});

test('a peer that is gone, or that sends something else, is a failure', () => {
  const [left, right] = ends();
  closeFile(opened.splice(opened.indexOf(right), 1)[0] ?? -1);
  expect(sendFile(left, file(), 1)).toBe('failed');
  expect(receiveFile(left)).toBe('failed');
  const [from, to] = ends();
  writeSync(from, 'four');
  writeSync(from, 'more');
  expect([receiveFile(to), receiveFile(to), receiveFile(to)]).toEqual(['failed', 'failed', 'none']);
  expect([sendFile(-1, 0, 1), receiveFile(-1)]).toEqual(['failed', 'failed']);
});

test('the kernel says who is at the other end', () => {
  const [left] = ends(streamPair);
  expect(peerOf(left)).toEqual({ pid: process.pid, uid: process.getuid?.() ?? -1 });
  expect(() => peerOf(file())).toThrow('SO_PEERCRED failed: errno 88');
});

test('a socket connects to a listener, and to nobody else', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-files-'));
  const path = join(folder, 'a.sock');
  try {
    expect(connectTo(path)).toBeUndefined();
    const listener = Bun.listen({ unix: path, socket: { data() {} } });
    const fd = connectTo(path);
    expect(peerOf(fd ?? -1).pid).toBe(process.pid);
    closeFile(fd ?? -1);
    listener.stop(true);
    expect(() => connectTo(join(folder, 'x'.repeat(110)))).toThrow('the path of a socket is too long');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a failed connection leaves no descriptor open', () => {
  const before = openSync('/dev/null', 'r');
  closeSync(before);
  expect(connectTo('/nowhere/a.sock')).toBeUndefined();
  const after = openSync('/dev/null', 'r');
  closeSync(after);
  expect(after).toBe(before);
});

test('what is closed is closed', () => {
  const [left, right] = streamPair();
  closeFile(left);
  closeFile(right);
  expect([isOpen(left), isOpen(right)]).toEqual([false, false]);
});
