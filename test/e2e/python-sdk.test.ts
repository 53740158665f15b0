import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { pythonWithSdk } from '../support/python.ts';
import { pythonCasesOf, runPythonCases } from '../support/python-cases.ts';
import { testUnless } from '../support/skip.ts';

const python = await pythonWithSdk();
const folder = join(import.meta.dir, 'python');
const cases = pythonCasesOf(folder);

let platform: TestPlatform | undefined;
let outcomes = new Map<string, string | null>();

beforeAll(async () => {
  if ('missing' in python) return;
  platform = await startPlatform();
  outcomes = await runPythonCases(python.program, folder, platform.env, 240_000);
}, 600_000);
afterAll(() => platform?.[Symbol.asyncDispose]());

const testWithPython = testUnless('missing' in python ? python.missing : undefined);

for (const name of cases) testWithPython(name, () => expect(outcomes.get(name)).toBeNull());

testWithPython('every case was found and run', () => {
  expect([...outcomes.keys()].sort()).toEqual([...cases].sort());
  expect(cases.length).toBeGreaterThan(10);
});

// Where the packages can be had, leaving the Python SDK out would be a hole that nobody sees.
test('the Python SDK is tested in continuous integration', () => {
  if (process.env['CI'] !== undefined) expect(python).toHaveProperty('program');
});
