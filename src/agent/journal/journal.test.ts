import { expect, test } from 'bun:test';
import type { AgentLogLine } from '../../protocol/agent.ts';
import { Journal } from './journal.ts';

/** Reads lines until there are `count`. */
async function take(stream: ReadableStream<Uint8Array>, count: number): Promise<AgentLogLine[]> {
  const reader = stream.getReader();
  let text = '';
  while (text.split('\n').length <= count) {
    const { value, done } = await reader.read();
    if (done) break;
    text += new TextDecoder().decode(value);
  }
  reader.releaseLock();
  return text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as AgentLogLine);
}
const messages = (lines: AgentLogLine[]) => lines.flatMap(line => ('message' in line ? [line.message] : []));

test('a follower gets existing and new entries after the last one it knows', async () => {
  const journal = new Journal('one');
  journal.add('info', 'process', 'first', {});
  journal.add('info', 'process', 'second', {});
  const stream = journal.follow('', 0);
  const before = await take(stream, 3);
  expect(before[0]).toEqual({ epoch: 'one' });
  expect(messages(before)).toEqual(['first', 'second']);
  journal.add('warn', 'process', 'third', { a: 'b' });
  expect(await take(stream, 1)).toMatchObject([{ n: 3, l: 2, message: 'third', fields: { a: 'b' } }]);
  expect(messages(await take(journal.follow('one', 2), 2))).toEqual(['third']);
  // Numbers of another epoch mean nothing.
  expect(messages(await take(journal.follow('two', 2), 4))).toEqual(['first', 'second', 'third']);
  expect((await stream.getReader().read()).done).toBe(true);
});

test('entries that nobody takes are bounded, and the gap shows', async () => {
  const journal = new Journal('one');
  for (let count = 0; count < 5000; count++) journal.add('info', 'process', `entry ${count}`, {});
  const [, first] = await take(journal.follow('one', 10), 1001);
  expect(first).toMatchObject({ n: 4001, message: 'entry 4000' });
  journal.add('info', 'process', 'x'.repeat(100_000), {});
  for (let count = 0; count < 500; count++) journal.add('info', 'process', 'x'.repeat(2000), {});
  const [, oldest] = await take(journal.follow('one', 0), 2);
  expect(oldest && 'n' in oldest ? oldest.n : 0).toBeGreaterThan(5300);
});

test('a reader that asks once gets the existing entries, and the end', async () => {
  const journal = new Journal('one');
  for (let count = 0; count < 800; count++) journal.add('info', 'process', 'x'.repeat(200), {});
  const follower = journal.follow('one', 790);
  const linesOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim().split('\n');
  expect(linesOf(journal.since('one', 5))).toHaveLength(1 + 795);
  expect(linesOf(journal.since('one', 800))).toEqual(['{"epoch":"one"}']);
  expect(linesOf(journal.since('two', 800))).toHaveLength(1 + 800);
  // The follower goes on.
  journal.add('info', 'process', 'last', {}, { now: true });
  expect(messages(await take(follower, 12)).at(-1)).toBe('last');
});
