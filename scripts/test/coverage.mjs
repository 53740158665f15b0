import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Suites whose process runs the code that they test. The others test a whole platform in separate processes, which are
 * not measured, because they must be what users run.
 */
export const measuredSuites = ['unit', 'api', 'edge', 'wire', 'agent'];

/** Options that make the runtime's test runner write its coverage to `folder`. */
export const coverageOptions = folder => ['--coverage', '--coverage-reporter=lcov', `--coverage-dir=${folder}`];

/** One line: how much of `src` ran in the suites that left reports in `folders`. Undefined if there are none. */
export function coverageOf(root, folders) {
  const hits = new Map();
  for (const folder of folders) addHits(hits, readOr(join(folder, 'lcov.info')));
  if (hits.size === 0) return undefined;
  const sources = readdirSync(join(root, 'src'), { recursive: true }).filter(
    name => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  );
  const lines = [...hits.values()].flatMap(file => [...file.values()]);
  const share = (100 * lines.filter(count => count > 0).length) / lines.length;
  return `coverage: ${share.toFixed(1)} % of the ${lines.length} lines of ${hits.size} files, of ${sources.length} in src, that the measured suites load in their own process`;
}

/** Adds what an lcov file says about `src`: SF names a source, DA has a line's number and how often it ran. */
function addHits(hits, lcov) {
  let file;
  for (const text of lcov.split('\n')) {
    if (text.startsWith('SF:')) {
      const path = text.slice(3);
      file = undefined;
      if (!path.startsWith('src/') || path.endsWith('.test.ts')) continue;
      if (!hits.has(path)) hits.set(path, new Map());
      file = hits.get(path);
    } else if (file && text.startsWith('DA:')) {
      const [line, count] = text.slice(3).split(',').map(Number);
      file.set(line, (file.get(line) ?? 0) + count);
    }
  }
}

function readOr(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
