import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { repository } from '../../support/platform.ts';
import { isTest, sourceFiles, type SourceFile } from '../../tidy/source-files.ts';
import { allChecks, passes, type Check } from './checks.ts';
import { build } from './copy.ts';

/** Code that runs as a whole: the body of a function, or a branch. */
type Place = { path: string; start: number; end: number };
/** What a test file reached when nothing was wrong. */
type Run = { file: string; seconds: number; places: number[] };
/** `sources`: a hash of the recorded sources. Test files written since are unknown, and not run. */
type Recorded = { sources: string; places: Place[]; runs: Run[] };

/** A test file that reaches a place, and how long it takes when nothing is wrong. */
export type Reaching = Check & { seconds: number };
/** The test files that reach a place of `src`; those that tell most about its file in the least time come first. */
type Reach = (path: string, offset: number) => Reaching[];

/** Kept beside what is built, for the next proof of the same sources. */
const recordFile = join(repository, 'dist/mutation-reach.json');
/** The module of a copy through which sources report that they ran. */
const teller = 'src/base/reached.ts';
/** Code that runs where no file of the host can be written, and the test files that run it. */
const elsewhere: readonly (readonly [prefix: string, tests: RegExp])[] = [
  ['src/agent/', /^test\/(agent|conformance)\/|^test\/e2e\/sdk-/],
  ['src/builder/', /^test\/builds\//],
  ['src/dashboard/', /^test\/dashboard\/.*\.node\.ts$/],
];

/** Finds out which test files reach what, in copies of the checkout that work in parallel. */
export async function reachOf(roots: string[]): Promise<Reach> {
  const sources = sourceFiles(['src']).filter(({ path }) => !isTest(path));
  const hash = Bun.hash(JSON.stringify(sources)).toString(36);
  const known = existsSync(recordFile) ? (JSON.parse(readFileSync(recordFile, 'utf8')) as Recorded) : undefined;
  const recorded = known?.sources === hash ? known : await record(roots, sources, hash);
  return lookUp(recorded, allChecks(repository));
}

async function record(roots: string[], sources: SourceFile[], hash: string): Promise<Recorded> {
  const waiting = allChecks(repository);
  const runs: Run[] = [];
  const places: Place[] = [];
  const told = sources.map(source => telling(source, places));
  await Promise.all(
    roots.map(async root => {
      using reached = mapOf(places.length);
      for (const { path, text } of told) writeFileSync(join(root, path), text);
      writeFileSync(join(root, teller), tellerText(reached.file, places.length));
      if (!(await build(root))) throw new Error('the sources can’t be built when they tell what they reach');
      for (let check = waiting.shift(); check; check = waiting.shift()) {
        reached.map.fill(0);
        const begin = performance.now();
        const whole = await passes(root, check);
        const seconds = (performance.now() - begin) / 1000;
        console.log(`${waiting.length} left: ${whole ? '' : 'DOES NOT PASS: '}${check.file}, ${seconds.toFixed(1)} s`);
        // A test file that fails without a fault says nothing about one.
        if (whole) runs.push({ file: check.file, seconds, places: indexesOf(reached.map) });
      }
      for (const { path, text } of sources) writeFileSync(join(root, path), text);
      rmSync(join(root, teller));
      if (!(await build(root))) throw new Error('the sources can’t be built');
    }),
  );
  const recorded = { sources: hash, places, runs };
  writeFileSync(recordFile, JSON.stringify(recorded));
  return recorded;
}

/** A source in which each place reports that it was reached. Its places are added to the known ones. */
function telling({ path, text }: SourceFile, places: Place[]): { path: string; text: string } {
  const inserts: { at: number; text: string }[] = [];
  const add = ({ start, end }: { start: number; end: number }) => places.push({ path, start, end }) - 1;
  new Visitor({
    BlockStatement: body => inserts.push({ at: body.start + 1, text: `reached_[${add(body)}]=1;` }),
    ArrowFunctionExpression: ({ body, expression }) => {
      if (!expression) return;
      inserts.push({ at: body.start, text: `(reached_[${add(body)}]=1,` }, { at: body.end, text: ')' });
    },
  }).visit(parseSync(path, text).program);
  const from = relative(dirname(path), teller);
  const head = `import{reached as reached_}from'${from.startsWith('.') ? from : `./${from}`}';`;
  const [hashbang = ''] = /^#!.*\n/.exec(text) ?? [];
  let [whole, done] = [hashbang + head, hashbang.length];
  for (const insert of inserts.sort((a, b) => a.at - b.at)) {
    whole += text.slice(done, insert.at) + insert.text;
    done = insert.at;
  }
  return { path, text: whole + text.slice(done) };
}

const tellerText = (file: string, places: number) => `
const open = () => {
  try {
    return Bun.mmap(${JSON.stringify(file)}, { shared: true });
  } catch {
    return new Uint8Array(${places});
  }
};
const reached: Uint8Array = open();
export { reached };
`;

/** A file that processes of any user map into their memory, so that the marks of killed processes remain too. */
function mapOf(bytes: number): Disposable & { file: string; map: Uint8Array } {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-reach-'));
  chmodSync(folder, 0o755);
  const file = join(folder, 'map');
  writeFileSync(file, '');
  truncateSync(file, bytes);
  chmodSync(file, 0o666);
  const map = Bun.mmap(file, { shared: true });
  return { file, map, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

const indexesOf = (map: Uint8Array): number[] => [...map.keys()].filter(index => map[index] !== 0);

function lookUp({ places, runs }: Recorded, checks: Check[]): Reach {
  const byFile = new Map(checks.map(check => [check.file, check]));
  const all = runs.flatMap(({ file, seconds, places: ran }) => {
    const check = byFile.get(file);
    return check ? [{ ...check, seconds, ran: new Set(ran) }] : [];
  });
  const byPath = Map.groupBy(places.keys(), index => places[index]?.path ?? '');
  return (path, offset) => {
    const inFile = byPath.get(path) ?? [];
    // Code outside of all places runs wherever the file is loaded.
    const innermost = inFile.filter(index => isWithin(offset, places[index] as Place)).at(-1);
    const reached = innermost === undefined ? inFile : [innermost];
    const untold = elsewhere.find(([prefix]) => path.startsWith(prefix))?.[1];
    // A test file that runs more of the file is likelier to be about it; one that takes little time costs little.
    const worth = ({ ran, seconds }: (typeof all)[number]) =>
      inFile.filter(index => ran.has(index)).length / (seconds + 1);
    return all
      .filter(({ ran, file }) => reached.some(index => ran.has(index)) || untold?.test(file))
      .toSorted((a, b) => worth(b) - worth(a));
  };
}

const isWithin = (offset: number, { start, end }: Place): boolean => start <= offset && offset < end;
