import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from './platform.ts';
import { runToEnd } from './process.ts';

const runner = join(repository, 'test/support/python/run.py');

/** Names of the cases in a folder: the functions of its `sync_cases.py` and `async_cases.py`. */
export function pythonCasesOf(folder: string): string[] {
  return ['sync', 'async'].flatMap(kind =>
    [...readFileSync(join(folder, `${kind}_cases.py`), 'utf8').matchAll(/^(?:async )?def (\w+)\(/gm)].map(
      ([, name]) => `${kind}: ${name}`,
    ),
  );
}

/** Runs every case of a folder with this Python, and answers each case's error, or null. Throws if none was run. */
export async function runPythonCases(
  python: string,
  folder: string,
  env: NodeJS.ProcessEnv,
  timeoutMs: number,
): Promise<Map<string, string | null>> {
  const { stdout, stderr } = await runToEnd([python, runner], { cwd: folder, env, timeoutMs });
  const outcomes = stdout
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as { case: string; problem: string | null });
  if (outcomes.length === 0) throw new Error(`no case was run: ${stderr}`);
  return new Map(outcomes.map(({ case: name, problem }) => [name, problem]));
}
