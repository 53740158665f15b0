import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test';
import { sandboxLogPageMax } from '../../../../protocol/logs.ts';
import { wholeLog, wholeLogEntriesMax } from './whole-log.ts';

/** A log with this many entries, one per millisecond, and the requests for it. */
let [entries, asked]: [number, string[]] = [0, []];
const entryAt = (ms: number) => ({
  timestamp: new Date(ms).toISOString(),
  level: 'info',
  message: `line ${ms}\nand more`,
  fields: ms % 2 === 0 ? { logger: 'agent' } : {},
});
beforeEach(() => {
  asked = [];
  spyOn(globalThis, 'fetch').mockImplementation((async (path: string) => {
    asked.push(path);
    const query = new URL(path, 'http://h').searchParams;
    const [from, limit] = [Number(query.get('cursor')), Number(query.get('limit'))];
    const count = Math.max(0, Math.min(limit, entries - from));
    return Response.json({ logs: Array.from({ length: count }, (_, at) => entryAt(from + at)) });
  }) as unknown as typeof fetch);
});
afterEach(() => void (fetch as unknown as { mockRestore(): void }).mockRestore());

const read = (matches = (_: { message: string }) => true) =>
  wholeLog({ sandboxId: 'i/1', team: 't1', filter: { level: 'info' }, matches });

test('a log is a line for each entry, whatever breaks lines in it', async () => {
  entries = 2;
  expect(await read()).toEqual({
    text:
      '1970-01-01T00:00:00.000Z info agent line 0\\nand more\n' + '1970-01-01T00:00:00.001Z info  line 1\\nand more\n',
    isCut: false,
  });
  expect(asked).toEqual([`/v2/sandboxes/i%2F1/logs?level=info&cursor=0&direction=forward&limit=${sandboxLogPageMax}`]);
});

test('it is read page by page to its end, each entry once, and what does not match is left out', async () => {
  for (const count of [0, sandboxLogPageMax - 1, sandboxLogPageMax, sandboxLogPageMax + 1]) {
    [entries, asked] = [count, []];
    const { text, isCut } = await read();
    expect({ count, lines: text.split('\n').length - 1, isCut }).toEqual({ count, lines: count, isCut: false });
    expect(asked).toHaveLength(count < sandboxLogPageMax ? 1 : 2);
  }
  expect((await read(({ message }) => message.startsWith('line 7\n'))).text.split('\n')).toHaveLength(2);
});

test('only the beginning of a longer log is there, and this is said', async () => {
  entries = 2 * wholeLogEntriesMax;
  const { text, isCut } = await read(({ message }) => message.startsWith('line 99999\n'));
  expect({ isCut, last: text.split('\n').at(-2) }).toEqual({
    isCut: true,
    last: '# There is more: read it by a program, page by page',
  });
  expect(text).toContain('line 99999');
  expect(asked).toHaveLength(wholeLogEntriesMax / sandboxLogPageMax);
});
