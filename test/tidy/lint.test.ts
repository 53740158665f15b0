import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { root, sourceFiles } from './source-files.ts';

// The linter reads the types of the whole tree: seconds on a quiet machine, minutes on a busy one.
setDefaultTimeout(600_000);

/** Lines of a function, without comments and blank ones. */
const functionLinesMax = 70;
const folders = ['src', 'test', 'bench', 'scripts'];

/** Runs a program of `node_modules/.bin` over the tree; answers its output if it found faults. */
function faults(program: string, ...options: string[]): { faults: string; said: string } {
  // With the pinned runtime: the machine's Node.js may be too old for these programs.
  const script = join(root, 'node_modules/.bin', program);
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...options, ...folders], {
    cwd: root,
    encoding: 'utf8',
  });
  return { faults: status === 0 ? '' : `${stdout}${stderr}`, said: `${stdout}${stderr}` };
}

/** How many files a program claims to have examined. */
function looked(said: string): number {
  return Number(/on (\d+) files/.exec(said)?.[1] ?? 0);
}

test('the linter finds nothing: promises that nobody waits for are errors', () => {
  const { faults: found, said } = faults('oxlint', '--type-aware');
  expect(found).toBe('');
  expect(looked(said)).toBeGreaterThanOrEqual(sourceFiles(['src', 'test', 'bench']).length);
});

test('the tree is formatted: one dialect for all of it (`npm run format`)', () => {
  const { faults: found, said } = faults('oxfmt', '--check');
  expect(found).toBe('');
  expect(looked(said)).toBeGreaterThanOrEqual(sourceFiles(['src', 'test', 'bench']).length);
});

// A function fits on a screen; the linter counts its lines without comments and blank ones. Pages of the dashboard are
// markup, and may take two screens.
test('functions have a bound, and one that is longer is found', () => {
  const { rules, overrides } = JSON.parse(readFileSync(join(root, '.oxlintrc.json'), 'utf8')) as {
    rules: Record<string, [string, { max: number }]>;
    overrides: { files: string[]; rules: Record<string, unknown> }[];
  };
  const rule = 'eslint/max-lines-per-function';
  expect(rules[rule]).toEqual(['error', { max: functionLinesMax, skipBlankLines: true, skipComments: true } as never]);
  expect(overrides.filter(({ rules }) => rule in rules).map(({ files }) => files)).toEqual([
    ['test/**', '**/*.test.ts'],
  ]);
  const folder = mkdtempSync(join(tmpdir(), 'atoll-long-function-'));
  try {
    const body = Array.from({ length: functionLinesMax }, () => '  take();').join('\n');
    writeFileSync(join(folder, 'long.ts'), `export function long(take: () => void) {\n${body}\n}\n`);
    const script = join(root, 'node_modules/.bin/oxlint');
    const config = join(root, '.oxlintrc.json');
    const { stdout } = spawnSync(process.execPath, [script, '--config', config, folder], { encoding: 'utf8' });
    expect(stdout).toContain('max-lines-per-function');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
