import { expect, test } from 'bun:test';
import { runCommandLine } from './run.ts';
import { volumeCommands } from './volumes.ts';

// A volume is given by its name or ID; anything else is not sent.

const asked: string[] = [];
const commands = volumeCommands((method, path) => {
  asked.push(`${method} ${path}`);
  return Promise.resolve(path === '/volumes' ? [{ volumeID: 'id-of-notes', name: 'notes' }] : null);
});

async function run(...argv: string[]) {
  asked.length = 0;
  let err = '';
  const code = await runCommandLine(argv, commands, {
    out: () => {},
    err: text => void (err += text),
    isInteractive: false,
  });
  return { code, err };
}

test('a volume is found by its name and by its ID', async () => {
  for (const wanted of ['notes', 'id-of-notes']) {
    expect((await run('volume', 'delete', wanted)).code).toBe(0);
    expect(asked).toEqual(['GET /volumes', 'DELETE /volumes/id-of-notes']);
  }
});

test('one that is not there is refused in words that know of both', async () => {
  const { code, err } = await run('volume', 'delete', 'nosuch');
  expect(code).toBe(1);
  expect(err).toContain('There is no volume with the name or ID "nosuch"');
  expect(asked).toEqual(['GET /volumes']);
});
