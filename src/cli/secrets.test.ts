import { expect, test } from 'bun:test';
import { runCommandLine } from './run.ts';
import { secretCommands } from './secrets.ts';

/** Runs a command with input that is piped or typed. */
async function run(argv: string[], chunks: string[] = [], isTerminal = false) {
  const asked: { method: string; path: string; body: unknown }[] = [];
  const secret = { secretID: 'sec_1', name: 'token', currentVersion: 2, updatedAt: '2026-01-01T00:00:00.000Z' };
  const commands = secretCommands(
    async (method, path, body) => (asked.push({ method, path, body }), secret),
    async () => [secret],
  );
  let [out, err, read] = ['', '', 0];
  const code = await runCommandLine(['secret', ...argv], commands, {
    out: text => void (out += text),
    err: text => void (err += text),
    isInteractive: isTerminal,
    input: {
      isTerminal,
      async *chunks() {
        for (const chunk of chunks) {
          read++;
          yield Buffer.from(chunk);
        }
      },
      setRaw: () => {},
      size: () => ({ columns: 80, rows: 24 }),
      onResize: () => () => {},
    },
  });
  return { code, out, err, read, asked };
}

test('a value is all of the input but the line break behind it', async () => {
  for (const [chunks, value] of [
    [['se', 'cret'], 'secret'],
    [['secret\n'], 'secret'],
    [['secret\r\n'], 'secret'],
    [[' first\nsecond \n\n'], ' first\nsecond \n'],
  ] as const) {
    const { code, out, err, asked } = await run(['create', 'token'], [...chunks]);
    expect({ code, out, err }).toEqual({ code: 0, out: 'sec_1\n', err: '' });
    expect(asked).toEqual([{ method: 'POST', path: '/secrets', body: { name: 'token', value } }]);
  }
});

test('whoever types is asked, and Return ends the value', async () => {
  const { err, read, asked } = await run(['update', 'a/b'], ['se', 'cret\n', 'more'], true);
  expect(err).toBe('Value: Updated.\n');
  expect(read).toBe(2);
  expect(asked).toEqual([{ method: 'POST', path: '/secrets/a%2Fb', body: { value: 'secret' } }]);
});

test('no value, and one that is longer than any may be, change nothing', async () => {
  const mebibyte = 'x'.repeat(1 << 20);
  expect((await run(['create', 'token'], [mebibyte])).code).toBe(0);
  for (const [chunks, says] of [
    [[], 'No value was given'],
    [['\n'], 'No value was given'],
    [[mebibyte, 'x'], 'longer than 1 MiB'],
  ] as const)
    for (const word of ['create', 'update']) {
      const { code, err, asked } = await run([word, 'token'], [...chunks]);
      expect({ code, asked }).toEqual({ code: 1, asked: [] });
      expect(err).toContain(says);
    }
});

test('metadata goes with a value', async () => {
  const { asked } = await run(['update', '--metadata', 'a=b=c', '--metadata', 'd=', 'token'], ['x']);
  expect(asked[0]?.body).toEqual({ value: 'x', metadata: { a: 'b=c', d: '' } });
  for (const wrong of ['a', '=b']) {
    const { code, err, asked: none } = await run(['create', '--metadata', wrong, 'token'], ['x']);
    expect({ code, none }).toEqual({ code: 2, none: [] });
    expect(err).toContain(`--metadata must be NAME=VALUE, and "${wrong}" is not`);
  }
});

test('the list has no value, and a delete names the secret', async () => {
  expect((await run(['list'])).out).toBe(
    'ID     NAME   VERSION  UPDATED\nsec_1  token  2        2026-01-01T00:00:00.000Z\n',
  );
  const { asked, out } = await run(['delete', '--json', 'token']);
  expect(asked).toEqual([{ method: 'DELETE', path: '/secrets/token', body: undefined }]);
  expect(JSON.parse(out)).toEqual({ secretID: 'token' });
});
