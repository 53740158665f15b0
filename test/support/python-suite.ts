import { afterAll, beforeAll, expect } from 'bun:test';
import { startPlatform, type TestPlatform } from './platform.ts';
import { waitFor } from './process.ts';
import { pythonWithSdk } from './python.ts';
import { pythonCasesOf, runPythonCases } from './python-cases.ts';
import { testUnless } from './skip.ts';

type Options = {
  /** The folder with `sync_cases.py` and `async_cases.py`. */
  folder: string;
  /** What is installed besides; default: the published clients. */
  requirements?: string;
  /** Settings of the platform. */
  env?: Record<string, string>;
  /** A shipped template to wait for, and how long its first build may take. */
  template?: { name: string; buildMs: number };
  casesTimeoutMs: number;
  /** Least number of cases. */
  casesLeast: number;
};

/**
 * Runs every case of a folder with a separate Python against a separate platform: one test per case, skipped if no such
 * Python is available. Answers that Python, or why there is none.
 */
export async function testPythonCases({
  folder,
  requirements,
  env,
  template,
  casesTimeoutMs,
  casesLeast,
}: Options): ReturnType<typeof pythonWithSdk> {
  const python = await pythonWithSdk(requirements);
  const cases = pythonCasesOf(folder);
  let platform: TestPlatform | undefined;
  let outcomes = new Map<string, string | null>();

  beforeAll(
    async () => {
      if ('missing' in python) return;
      platform = await startPlatform(env);
      if (template) await waitForTemplate(platform, template);
      outcomes = await runPythonCases(python.program, folder, platform.env, casesTimeoutMs);
    },
    casesTimeoutMs + 2 * (template?.buildMs ?? casesTimeoutMs),
  );
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const testWithPython = testUnless('missing' in python ? python.missing : undefined);
  for (const name of cases) testWithPython(name, () => expect(outcomes.get(name)).toBeNull());
  testWithPython('every case was found and run', () => {
    expect([...outcomes.keys()].sort()).toEqual([...cases].sort());
    expect(cases.length).toBeGreaterThanOrEqual(casesLeast);
  });
  return python;
}

async function waitForTemplate(platform: TestPlatform, template: { name: string; buildMs: number }): Promise<void> {
  const isBuilt = async () => {
    const answer = await platform.api('POST', '/sandboxes', { templateID: template.name, timeout: 60 });
    return answer.status === 201 || !(await answer.text()).includes('still being built');
  };
  await waitFor('the template', isBuilt, template.buildMs);
}
