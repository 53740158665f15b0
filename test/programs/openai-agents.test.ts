import { expect } from 'bun:test';
import { join } from 'node:path';
import { startPlatform } from '../support/platform.ts';
import { pythonTimeoutMs, pythonWithSdk } from '../support/python.ts';
import { pythonCasesOf, runPythonCases } from '../support/python-cases.ts';
import { testUnless } from '../support/skip.ts';

const folder = join(import.meta.dir, 'openai-agents');
const python = await pythonWithSdk(join(folder, 'requirements.txt'));
const casesMs = 5 * 60_000;

testUnless('missing' in python ? python.missing : undefined)(
  'sandboxes of OpenAI’s agents: commands, files, terminals, pauses and snapshots',
  async () => {
    if ('missing' in python) return;
    await using platform = await startPlatform();
    const outcomes = await runPythonCases(python.program, folder, platform.env, casesMs);
    expect([...outcomes.values()].filter(Boolean)).toEqual([]);
    expect([...outcomes.keys()].sort()).toEqual(pythonCasesOf(folder).sort());
    expect(outcomes.size).toBe(2);
  },
  pythonTimeoutMs + casesMs,
);
