import { importsOf } from '../../tidy/imports.ts';
import { isTest, sourceFiles } from '../../tidy/source-files.ts';

/** Test files that are run for one fault in a process before whole suites are. */
const nearestMax = 8;

/**
 * Suites that run a part of `src` in processes of its own, the likeliest to see a fault first. The first prefix that
 * fits a path counts.
 */
const suites: readonly (readonly [prefix: string, suites: readonly string[]])[] = [
  ['src/agent/', ['agent', 'conformance', 'e2e']],
  ['src/api/dashboard/', ['api', 'dashboard']],
  ['src/api/blob/', ['store', 'cluster']],
  ['src/api/backup/', ['backup', 'safety']],
  ['src/api/', ['api', 'lifecycle', 'e2e', 'safety']],
  ['src/bin/', ['setup', 'doctor', 'parts', 'e2e', 'cli']],
  ['src/blob/', ['store', 'cluster']],
  ['src/builder/', ['builds', 'attacks']],
  ['src/cli/', ['cli', 'e2e']],
  ['src/dashboard/', ['dashboard']],
  ['src/edge/', ['edge', 'e2e', 'attacks']],
  ['src/gate/', ['wire', 'simulation', 'cluster']],
  ['src/http1/', ['edge', 'egress', 'fuzz']],
  ['src/node/builds/', ['builds']],
  ['src/node/layers/', ['builds', 'node', 'conformance']],
  ['src/node/network/', ['egress', 'node', 'conformance', 'attacks']],
  ['src/node/snapshot/', ['snapshot', 'lifecycle']],
  ['src/node/volumes/', ['volumes', 'attacks']],
  ['src/node/doctor/', ['doctor']],
  ['src/node/', ['node', 'conformance', 'lifecycle', 'snapshot', 'safety']],
  ['src/supervisor/', ['parts', 'e2e']],
  ['src/wire/', ['wire', 'parts', 'cluster']],
  ['src/', ['api', 'node', 'e2e']],
];

/** Whole suites that can see a fault in a file, in the order in which they are asked. */
export const suitesFor = (path: string): readonly string[] =>
  suites.find(([prefix]) => path.startsWith(prefix))?.[1] ?? [];

/** Answers, for a file of `src`, the test files of Bun that import it, the nearest first. */
export function nearestTests(): (path: string) => string[] {
  const users = new Map<string, string[]>();
  for (const file of sourceFiles(['src', 'test']))
    for (const { target } of importsOf(file)) if (target) users.set(target, [...(users.get(target) ?? []), file.path]);
  return path => {
    const seen = new Set([path]);
    // A set is walked while it grows: breadth first.
    for (const file of seen) for (const user of users.get(file) ?? []) seen.add(user);
    return [...seen]
      .filter(file => isTest(file) && file.endsWith('.test.ts') && !file.startsWith('test/tidy/'))
      .slice(0, nearestMax);
  };
}
