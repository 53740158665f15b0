import { afterAll, beforeAll, expect, test } from 'bun:test';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';
import { pythonWithSdk } from '../support/python.ts';
import { testUnless } from '../support/skip.ts';

const python = await pythonWithSdk();
const cases = [
  'create_and_kill',
  'commands',
  'background_command',
  'files',
  'connect_and_timeout',
  'volumes',
  'template',
]
  .map(name => `sync: ${name}`)
  .concat(['create_and_kill', 'commands', 'background_command', 'files', 'volumes'].map(name => `async: ${name}`));

let platform: TestPlatform | undefined;
const outcomes = new Map<string, string | null>();

beforeAll(async () => {
  if ('missing' in python) return;
  platform = await startPlatform();
  const { stdout, stderr } = await runToEnd([python.program, 'run.py'], {
    cwd: `${import.meta.dir}/python`,
    env: { ...platform.env, E2B_VOLUME_API_URL: platform.ready.url },
    timeoutMs: 240_000,
  });
  for (const line of stdout.split('\n').filter(Boolean)) {
    const { case: name, problem } = JSON.parse(line) as { case: string; problem: string | null };
    outcomes.set(name, problem);
  }
  if (outcomes.size === 0) throw new Error(stderr);
}, 600_000);
afterAll(() => platform?.[Symbol.asyncDispose]());

const testWithPython = testUnless('missing' in python ? python.missing : undefined);

for (const name of cases) testWithPython(name, () => expect(outcomes.get(name)).toBeNull());

testWithPython('every case of the Python files is listed here', () =>
  expect([...outcomes.keys()].sort()).toEqual([...cases].sort()),
);

// Where the packages can be had, leaving the Python SDK out would be a hole that nobody sees.
test('the Python SDK is tested in continuous integration', () => {
  if (process.env['CI'] !== undefined) expect(python).toHaveProperty('program');
});
