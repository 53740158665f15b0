import { expect, test } from 'bun:test';
import { isTest, root, type SourceFile, sourceFiles } from './source-files.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

type Rule = {
  name: string;
  /** The reason for the rule: shown beside what breaks it. */
  reason: string;
  pattern: RegExp;
  /** Searches the text including comments and strings, not only the code. */
  inText?: boolean;
  applies: (path: string) => boolean;
};

const everywhere = () => true;
const inSource = (path: string) => path.startsWith('src/');
const outside =
  (...folders: string[]) =>
  (path: string) =>
    inSource(path) && !isTest(path) && !folders.some(folder => path.startsWith(folder));

const rules: Rule[] = [
  {
    name: 'environment',
    reason:
      'settings have one place with names, defaults and checks: src/bin reads the environment, everything else gets values',
    pattern: /\bprocess\.env\b|\bBun\.env\b|\bimport\.meta\.env\b/,
    applies: outside('src/bin/', 'src/base/process/inherited.ts'),
  },
  {
    name: 'shell strings',
    reason: 'commands are argv arrays: a shell string with anything interpolated is an injection waiting for its input',
    pattern: /\bexecSync\s*\(|\bexec\s*\(\s*`|\bshell:\s*true|\bimport\s*\{[^}]*\$[^}]*\}\s*from\s*'bun'|\bBun\.\$/,
    applies: inSource,
  },
  {
    name: 'console',
    reason:
      'what runs unattended logs through Log, which has levels and leaves secrets out; only the command line talks to people',
    pattern: /\bconsole\.\w+\s*\(/,
    applies: outside('src/bin/', 'src/cli/'),
  },
  {
    name: 'any',
    reason: 'any switches the compiler off for everything it touches; unknown and a check keep it on',
    pattern: /(?::|\bas|<|\|)\s*any\b|\bany\[\]/,
    applies: everywhere,
  },
  {
    name: 'addresses',
    reason:
      'an address keeps no memory from being collected before it is used: native calls take the array itself. Only structures that hold addresses of what their owner keeps need them',
    pattern: /\bptr\s*\(/,
    applies: path =>
      inSource(path) &&
      ![
        'src/agent/native.ts',
        'src/wire/files.ts',
        'src/node/cgroup/device-filter.ts',
        'src/node/doctor/syscalls.ts',
      ].includes(path),
  },
  {
    name: 'compiler silenced',
    reason: 'an error that is silenced is still there',
    pattern: /@ts-(ignore|nocheck|expect-error)/,
    inText: true,
    applies: everywhere,
  },
  {
    name: 'shared heads over an await',
    reason:
      'the head of a request is overwritten by the next one as soon as anything is awaited: what goes on later takes a KeptRequestHead',
    pattern: /\basync\s+(?:function\s+)?#?\w+\s*\([^)]*:\s*RequestHead\b|\basync\s*\([^)]*:\s*RequestHead\b/,
    applies: path => path.startsWith('src/edge/'),
  },
  {
    name: 'skipped or focused tests',
    reason:
      'a test that does not run protects nothing; what a host can’t do goes through test/support/skip.ts, which says so loudly',
    pattern: /\b(?:test|it|describe)\.(?:skip|skipIf|if|only|todo|todoIf)\s*\(/,
    applies: path => path !== 'test/support/skip.ts',
  },
  {
    name: 'loose ends',
    reason: 'an intention belongs in an issue, where somebody finds it',
    pattern: /\b(TODO|FIXME|XXX)\b/,
    inText: true,
    applies: everywhere,
  },
  {
    name: 'long lines',
    reason: 'the formatter leaves texts and comments alone; what does not fit a screen is not read',
    pattern: /^.{121,}$/m,
    inText: true,
    applies: inSource,
  },
  {
    name: 'comments that begin with a genitive',
    reason: 'whoever reads “Of each sandbox, …” waits for what it is about: a comment begins with its subject',
    pattern: /^\s*(?:\/\*\*|\/\/) Of /m,
    inText: true,
    applies: inSource,
  },
  {
    name: 'errors that vanish',
    reason:
      'whoever reads a catch without the error asks whether it was forgotten: it throws another one, or says why not',
    pattern: /^( *)\S.*\bcatch \{\n(?:(?!\1\}|.*\/\/|.*\bthrow\b).*\n)*\1\}/m,
    inText: true,
    applies: inSource,
  },
  {
    name: 'default exports',
    reason: 'a name that the exporter chose can be searched for',
    pattern: /^export default\b/m,
    applies: everywhere,
  },
  {
    name: 'driver names',
    reason: 'the node asks a driver what it can: whoever compares its name must be found for each new driver',
    pattern: /['"`](?:crun|gvisor)['"`]/,
    inText: true,
    applies: path => path.startsWith('src/node/') && !path.startsWith('src/node/drivers/') && !isTest(path),
  },
  {
    name: 'barrels',
    reason: 'a file of re-exports hides who uses what and makes cycles',
    pattern: /^export \*|^export \{[^}]*\} from\b/m,
    applies: inSource,
  },
  {
    name: 'module state',
    reason: 'state of a module is shared by everything in the process: two platforms in one test would see each other',
    pattern:
      /^(?:export )?(?:let|var) \w|^(?:export )?const \w+(?:: [^=]+)? = new (?:Map|Set|WeakMap|WeakSet)(?:<[^=]*>)?\(\);/m,
    applies: outside(),
  },
];

const files = sourceFiles(['src', 'test', 'bench']).filter(file => file.path !== 'test/tidy/banned.test.ts');

for (const rule of rules) {
  test(`${rule.name}: ${rule.reason}`, () => {
    const looked = files.filter(file => rule.applies(file.path));
    expect(looked.length).toBeGreaterThan(30);
    expect(looked.flatMap(file => breaches(rule, file))).toEqual([]);
  });
}

function breaches(rule: Rule, file: SourceFile): string[] {
  const match = rule.pattern.exec(rule.inText ? file.text : file.code);
  if (!match) return [];
  const line = file.text.slice(0, match.index).split('\n').length;
  return [`${file.path}:${line} ${match[0].trim()}`];
}

// A rule whose wrong pattern finds nothing would always pass.
const examples: Record<string, string> = {
  environment: 'const home = process.env.HOME;',
  'shell strings': "execSync('ls');",
  console: "console.log('x');",
  any: 'const x = y as any;',
  addresses: 'libc.open(ptr(cString(path)));',
  'compiler silenced': '// @ts-ignore',
  'shared heads over an await': 'async function connect(client: Client, head: RequestHead) {}',
  'skipped or focused tests': "test.only('x', () => {});",
  'loose ends': '// TODO later',
  'driver names': "if (driver.name === 'crun') return;",
  'long lines': `// ${'x'.repeat(120)}`,
  'comments that begin with a genitive': '/** Of one archive, bytes. */',
  'errors that vanish': 'try {\n  return look();\n} catch {\n  return undefined;\n}',
  'default exports': 'export default 1;',
  barrels: "export * from './x.ts';",
  'module state': 'const cache = new Map<string, number>();',
};

test('every rule finds the example of its breach', () => {
  expect(Object.keys(examples).sort()).toEqual(rules.map(rule => rule.name).sort());
  for (const rule of rules) expect(rule.pattern.test(examples[rule.name] ?? '')).toBe(true);
});

test('the list of rules reads the code and not the comments', () => {
  const self = readFileSync(join(root, 'test/tidy/source-files.ts'), 'utf8');
  expect(self).toContain('sourceFiles');
  const [file] = sourceFiles(['test/tidy']).filter(({ path }) => path.endsWith('/banned.test.ts'));
  expect(file?.code).not.toContain('an error that is silenced');
});
