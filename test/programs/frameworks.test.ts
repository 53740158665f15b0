import { afterAll, beforeAll, expect } from 'bun:test';
import { join } from 'node:path';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';
import { pythonWithSdk } from '../support/python.ts';
import { pythonCasesOf, runPythonCases } from '../support/python-cases.ts';
import { testUnless } from '../support/skip.ts';

const folder = join(import.meta.dir, 'python');
const python = await pythonWithSdk(join(folder, 'requirements.txt'));
const cases = pythonCasesOf(folder);
/** The first build of a machine downloads packages. */
const buildMs = 10 * 60_000;

let platform: TestPlatform | undefined;
let outcomes = new Map<string, string | null>();

beforeAll(async () => {
  if ('missing' in python) return;
  const started = await startPlatform({ ATOLL_TEMPLATES: 'code-interpreter-v1', ATOLL_TEMPLATE_PARTS: 'none' });
  platform = started;
  const created = async () => {
    const answer = await started.api('POST', '/sandboxes', { templateID: 'code-interpreter-v1', timeout: 60 });
    return answer.status === 201 || !(await answer.text()).includes('still being built');
  };
  await waitFor('the template', created, buildMs);
  outcomes = await runPythonCases(python.program, folder, started.env, 5 * 60_000);
}, buildMs * 2);
afterAll(() => platform?.[Symbol.asyncDispose]());

const testWithPython = testUnless('missing' in python ? python.missing : undefined);

for (const name of cases) testWithPython(name, () => expect(outcomes.get(name)).toBeNull());

testWithPython('every case was found and run', () => {
  expect([...outcomes.keys()].sort()).toEqual([...cases].sort());
  expect(cases.length).toBe(3);
});
