import { expect, test } from 'bun:test';
import { runCommandLine } from '../run.ts';
import { logsCommand } from './logs.ts';

const entry = (timestamp: string, message: string, level = 'info') => ({ timestamp, level, message, fields: {} });
const [first, second, third] = [
  entry('2026-01-02T03:04:05.000Z', 'one'),
  entry('2026-01-02T03:04:05.001Z', 'two', 'error'),
  entry('2026-01-02T03:04:06.000Z', 'three'),
];

/** Runs the command on a sandbox whose log arrives in these pages, and in one stream. */
async function run(line: string, pages = [[first, second], [third], []]) {
  const asked: [path: string, query: Record<string, string>][] = [];
  let [out, err] = ['', ''];
  const command = logsCommand(
    async (_, path) => {
      const [of = '', query = ''] = path.split('?');
      asked.push([of, Object.fromEntries(new URLSearchParams(query))]);
      return { logs: pages.shift() };
    },
    async function* (path, query) {
      asked.push([path, query]);
      yield* pages.flat();
    },
  );
  const code = await runCommandLine(['sandbox', 'logs', ...line.split(' ')], [command], {
    out: text => void (out += String(text)),
    err: text => void (err += text),
    isInteractive: false,
  });
  return { code, out, err, asked };
}

test('a log is read page by page, each from behind the last entry of the one before', async () => {
  const { code, out, asked } = await run('i/1');
  const page = { limit: '1000', direction: 'forward' };
  expect(asked).toEqual([
    ['/v2/sandboxes/i%2F1/logs', { ...page, cursor: '0' }],
    ['/v2/sandboxes/i%2F1/logs', { ...page, cursor: String(Date.parse(second.timestamp) + 1) }],
    ['/v2/sandboxes/i%2F1/logs', { ...page, cursor: String(Date.parse(third.timestamp) + 1) }],
  ]);
  expect([code, out]).toEqual([
    0,
    `${first.timestamp} info  one\n${second.timestamp} error two\n${third.timestamp} info  three\n`,
  ]);
});

test('entries of a level are asked for, and programs read them as they are', async () => {
  const { out, asked } = await run('--level error --json i1', [[second], []]);
  expect(asked.map(([, { level }]) => level)).toEqual(['error', 'error']);
  expect(out).toBe(`${JSON.stringify(second)}\n`);
});

test('a log is followed from its begin', async () => {
  const { out, asked } = await run('-f --level error i/1', [[second]]);
  expect(asked).toEqual([['/sandboxes/i%2F1/logs/stream', { after: '0', level: 'error' }]]);
  expect(out).toBe(`${second.timestamp} error two\n`);
  expect((await run('--follow i1', [])).asked).toEqual([['/sandboxes/i1/logs/stream', { after: '0' }]]);
});
