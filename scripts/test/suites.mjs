import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { bunPath } from '../setup/npm-packages.mjs';

/** Longest time for one suite, ms. */
const suiteTimeoutMs = 12 * 60_000;

/** Folders of test/ that are not suites of their own. */
const notSuites = ['support'];

/**
 * The suites in the order in which they run: the fast ones first, so that a mistake shows early.
 * `kind` says which report the runner writes to the file that `argv` gets.
 */
export function suitesOf(root) {
  const bun = bunPath(root);
  const bunTest = (name, path) => ({
    name,
    kind: 'junit',
    argv: report => [bun, 'test', '--timeout=60000', '--reporter=junit', `--reporter-outfile=${report}`, path],
    timeoutMs: suiteTimeoutMs,
  });
  const nodeTest = (name, files) => ({
    name,
    kind: 'tap',
    argv: report => [
      process.execPath, '--import', 'tsx', '--test', '--test-concurrency=1',
      '--test-reporter=spec', '--test-reporter-destination=stdout', '--test-reporter=tap', `--test-reporter-destination=${report}`,
      ...files,
    ],
    timeoutMs: suiteTimeoutMs,
  });
  const suites = [
    { name: 'types', kind: 'exit', argv: () => [join(root, 'node_modules/.bin/tsc'), '-p', root], timeoutMs: suiteTimeoutMs },
    bunTest('tidy', './test/tidy/'),
    bunTest('unit', './src/'),
  ];
  const folders = readdirSync(join(root, 'test'), { withFileTypes: true }).filter(entry => entry.isDirectory());
  for (const { name } of folders.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (name === 'tidy' || notSuites.includes(name)) continue;
    const files = readdirSync(join(root, 'test', name), { recursive: true }).map(file => join('test', name, file));
    // Clients run on Node.js as their users run them; everything else on the platform's own runtime.
    const onNode = files.filter(file => file.endsWith('.node.ts')).sort();
    if (files.some(file => file.endsWith('.test.ts'))) suites.push(bunTest(name, `./test/${name}/`));
    if (onNode.length > 0) suites.push(nodeTest(`${name} (Node.js)`, onNode));
  }
  return suites;
}
