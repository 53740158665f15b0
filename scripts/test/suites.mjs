import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { coverageOptions, measuredSuites } from './coverage.mjs';
import { bunPath } from '../setup/npm-packages.mjs';

/**
 * Time limit of a suite, for one that hangs, ms: several times what the longest takes, for a machine that others use
 * too.
 */
const suiteTimeoutMs = 25 * 60_000;

/** Folders of test/ that are no suites. */
const notSuites = ['support'];
/**
 * The suites of `npm test` that take half a minute or more, the longest first. They begin before all others except the
 * quick ones: otherwise the last one would run on alone at the end.
 */
export const minutesLong = [
  ...['api', 'dashboard (Node.js)', 'cluster', 'attacks', 'lifecycle', 'builds', 'setup', 'safety', 'e2e', 'egress'],
  ...['cli (Node.js)', 'conformance', 'parts', 'e2e (Node.js)', 'builds (Node.js)', 'code-interpreter (Node.js)'],
  ...['snapshot', 'code-interpreter', 'volumes', 'node', 'agent', 'lifecycle (Node.js)', 'docs', 'edge', 'backup'],
];

/**
 * Suites that take long, some also much from the internet: they run only when named. `script`: the npm script that
 * names them.
 */
export const longSuites = [
  { name: 'cluster-long', script: 'test:cluster' },
  { name: 'dashboard-long', script: 'test:dashboard' },
  { name: 'dashboard-scale', script: 'test:dashboard' },
  { name: 'image', script: 'test:image' },
  { name: 'kubernetes', script: 'test:kubernetes' },
  { name: 'programs', script: 'test:programs' },
  { name: 'simulation-long', script: 'test:cluster' },
  { name: 'templates', script: 'test:templates' },
  { name: 'upgrade', script: 'test:upgrade' },
];
/** They wait for registries and build what they fetched: on a busy machine the longest takes an hour. */
const longTimeoutMs = 120 * 60_000;
/**
 * Node.js suites that run several of their files at a time: they wait for browsers and sandboxes more than they
 * compute, and no file sees another's platform.
 */
const filesAtOnce = { 'dashboard-long (Node.js)': 3 };
/** Node.js suites whose files share what takes long to start: these run one after another in one process. */
const filesTogether = ['dashboard (Node.js)'];
const together = fileURLToPath(new URL('together.mjs', import.meta.url));
const timeoutOf = name => (longSuites.some(long => long.name === name) ? longTimeoutMs : suiteTimeoutMs);

/** Folder of the coverage of a suite with this report. */
export const coverageFolder = report => `${report}.coverage`;

/**
 * The suites in starting order: the quick ones, so that mistakes show early; those that take minutes; the others.
 * `kind` says which report the runner writes to the file that `argv` gets; `only` makes a suite of one of its files.
 */
export function suitesOf(root) {
  const bun = bunPath(root);
  const bunTest = (name, path) => ({
    name,
    kind: 'junit',
    argv: report => [
      bun,
      'test',
      '--timeout=60000',
      '--reporter=junit',
      `--reporter-outfile=${report}`,
      ...(measuredSuites.includes(name) ? coverageOptions(coverageFolder(report)) : []),
      path,
    ],
    timeoutMs: timeoutOf(name),
    only: file => bunTest(name, resolve(root, file)),
  });
  const nodeTest = (name, files, timeoutMs) => ({
    name,
    kind: 'tap',
    argv: report => [
      process.execPath,
      '--import',
      'tsx',
      ...(filesTogether.includes(name) ? [] : ['--test', `--test-concurrency=${filesAtOnce[name] ?? 1}`]),
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      '--test-reporter=tap',
      `--test-reporter-destination=${report}`,
      ...(filesTogether.includes(name) ? [together] : []),
      ...files,
    ],
    timeoutMs,
    only: file => nodeTest(name, [resolve(root, file)], timeoutMs),
  });
  const quick = [
    {
      name: 'types',
      kind: 'exit',
      argv: () => [join(root, 'node_modules/.bin/tsc'), '-p', root],
      timeoutMs: suiteTimeoutMs,
    },
    {
      // A browser has a different set of global names.
      name: 'types (dashboard)',
      kind: 'exit',
      argv: () => [join(root, 'node_modules/.bin/tsc'), '-p', join(root, 'src/dashboard')],
      timeoutMs: suiteTimeoutMs,
    },
    bunTest('tidy', './test/tidy/'),
    bunTest('unit', './src/'),
  ];
  const suites = [];
  const folders = readdirSync(join(root, 'test'), { withFileTypes: true }).filter(entry => entry.isDirectory());
  for (const { name } of folders.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (name === 'tidy' || notSuites.includes(name)) continue;
    const files = readdirSync(join(root, 'test', name), { recursive: true }).map(file => join('test', name, file));
    // Clients run on Node.js, as users run them; everything else on the platform's own runtime.
    const onNode = files.filter(file => file.endsWith('.node.ts')).sort();
    if (files.some(file => file.endsWith('.test.ts'))) suites.push(bunTest(name, `./test/${name}/`));
    if (onNode.length > 0) suites.push(nodeTest(`${name} (Node.js)`, onNode, timeoutOf(name)));
  }
  const isMinutesLong = ({ name }) => minutesLong.includes(name);
  const long = suites.filter(isMinutesLong).sort((a, b) => minutesLong.indexOf(a.name) - minutesLong.indexOf(b.name));
  return [...quick, ...long, ...suites.filter(suite => !isMinutesLong(suite))];
}
