import { expect, test } from 'bun:test';
import { createBuildLog, createLineSplitter } from './build-log.ts';

/** Processor time of this process, milliseconds. Unlike the time of day, it does not grow while others compute. */
const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

test('entries are read by number, none lost and none twice, and the result after the last', async () => {
  const log = createBuildLog(() => 5);
  log.write('one', { step: '1' });
  const first = await log.read(0, 0);
  expect(first).toEqual({ entries: [{ timestampMs: 5, level: 'info', message: 'one', step: '1' }], next: 1 });
  const waiting = log.read(1, 60_000);
  log.write('two');
  expect((await waiting).entries.map(entry => entry.message)).toEqual(['two']);
  for (let i = 0; i < 1500; i++) log.write(`line ${i}`);
  log.end({ status: 'error', message: 'why' });
  log.write('too late');
  let seen = 2;
  for (;;) {
    const page = await log.read(seen, 0);
    seen = page.next;
    if (page.result) break;
    expect(page.entries).toHaveLength(1000);
  }
  expect(seen).toBe(1502);
});

test('a log has an end, and says so', async () => {
  const log = createBuildLog(() => 0);
  for (let i = 0; i < 30_000; i++) log.write('x');
  let last = '';
  for (let next = 0; ;) {
    const page = await log.read(next, 0);
    if (page.entries.length === 0) break;
    last = page.entries.at(-1)?.message ?? '';
    next = page.next;
  }
  expect(last).toContain('cut here');
});

test('lines are put together from parts, each stream for itself, progress bars at their last state', () => {
  const lines: string[] = [];
  const splitter = createLineSplitter(line => lines.push(line));
  const bytes = (text: string) => Buffer.from(text);
  splitter.take('stdout', bytes('a\u00e4').subarray(0, 2));
  splitter.take('stderr', bytes('err\n'));
  splitter.take('stdout', bytes('\u00e4').subarray(1));
  splitter.take('stdout', bytes('b\r\n10%\r50%\r100%\n\n  \nrest'));
  splitter.end();
  expect(lines).toEqual(['err', 'aäb', '100%', 'rest']);
});

test.each([
  ['\r'.repeat(65_000) + 'b\n', ['b']],
  ['a\r'.repeat(30_000) + '\n', ['a']],
  [`${'\r'.repeat(60_000)}\n`, []],
  ['x\r\r\ry\r\r\n', ['y']],
])('thousands of returns are read in one go', (output, expected) => {
  const lines: string[] = [];
  const splitter = createLineSplitter(line => lines.push(line));
  const startedMs = cpuMs();
  for (let part = 0; part < 20; part++) splitter.take('stdout', Buffer.from(output));
  splitter.end();
  expect(lines).toEqual(Array.from({ length: 20 }, () => expected).flat());
  // With quadratic work, one such line takes several seconds.
  expect(cpuMs() - startedMs).toBeLessThan(2_000);
});

test('a log has an end in characters too', async () => {
  const log = createBuildLog(() => 0);
  for (let i = 0; i < 5_000; i++) log.write('x'.repeat(8_192));
  let entries = 0;
  for (let next = 0; ;) {
    const page = await log.read(next, 0);
    if (page.entries.length === 0) break;
    entries += page.entries.length;
    next = page.next;
  }
  expect(entries).toBeLessThan(2_100);
});
