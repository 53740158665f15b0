import { expect, test } from 'bun:test';
import { readAgentLine } from './log-line.ts';

const now = 1_800_000_000_000;
const good = { n: 1, t: now - 5, l: 1, logger: 'process', message: 'said', fields: { pid: '1' } };
const read = (line: unknown) => readAgentLine(typeof line === 'string' ? line : JSON.stringify(line), now);

test('lines of our own agent are taken unchanged', () => {
  expect(read({ epoch: 'abc-1' })).toEqual({ epoch: 'abc-1' });
  expect(read(good)).toEqual({
    number: 1,
    entry: { timestampMs: now - 5, level: 'info', logger: 'process', message: 'said', fields: { pid: '1' } },
  });
});

test.each([
  '',
  'nonsense',
  'null',
  '[]',
  '{}',
  '{"epoch":"a/b"}',
  { ...good, n: -1 },
  { ...good, n: 1.5 },
  { ...good, l: 9 },
  { ...good, l: 'info' },
  { ...good, message: 7 },
])('%j is nothing', line => {
  expect(read(line)).toBeUndefined();
});

test('nobody in a sandbox speaks for the platform, from another time, or to the terminal', () => {
  expect(read({ ...good, logger: 'sandbox' })).toMatchObject({ entry: { logger: 'agent' } });
  for (const t of [now + 1, -1, 'x', null, Number.MAX_VALUE])
    expect(read({ ...good, t })).toMatchObject({ entry: { timestampMs: now } });
  expect(read({ ...good, message: '\u001b[31mred\u001b[0m\u001b]0;title\u0007\u0000\u0008 x\ty\ud800' })).toMatchObject(
    { entry: { message: 'red x\ty\ufffd' } },
  );
  const fields = { ok: 'yes', number: 5, __proto__: 'x', 'bad name': 'x', long: 'x'.repeat(10_000) };
  const line = read({ ...good, message: 'x'.repeat(100_000), fields });
  expect(
    line && 'entry' in line
      ? [
          line.entry.message.length,
          line.entry.fields['ok'],
          line.entry.fields['long']?.length,
          Object.keys(line.entry.fields),
        ]
      : [],
  ).toEqual([4096, 'yes', 4096, ['ok', 'long']]);
});
