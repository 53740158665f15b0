import { expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { TypeCompiler } from '@sinclair/typebox/compiler';
import { isForSupportedMachines } from '../../scripts/setup/bill-of-materials.mjs';

const root = join(import.meta.dir, '../..');

/** The parts of CycloneDX 1.5 that are written (cyclonedx.org/docs/1.5/json), and nothing else. */
const closed = { additionalProperties: false };
const Hash = Type.Union(
  [
    ['MD5', 32],
    ['SHA-1', 40],
    ['SHA-256', 64],
    ['SHA-384', 96],
    ['SHA-512', 128],
  ].map(([alg, length]) =>
    Type.Object({ alg: Type.Literal(String(alg)), content: Type.String({ pattern: `^[0-9a-f]{${length}}$` }) }, closed),
  ),
);
const licenses = Type.Array(Type.Object({ expression: Type.String({ minLength: 1 }) }, closed), {
  minItems: 1,
  maxItems: 1,
});
const Component = Type.Object(
  {
    type: Type.Literal('library'),
    'bom-ref': Type.String({ minLength: 1 }),
    name: Type.String({ minLength: 1 }),
    version: Type.String({ minLength: 1 }),
    purl: Type.String({ pattern: '^pkg:(npm|pypi|deb/[a-z]+)/[^\\s@?#]+@[^\\s@?#/]+$' }),
    scope: Type.Optional(Type.Union([Type.Literal('required'), Type.Literal('optional'), Type.Literal('excluded')])),
    hashes: Type.Optional(Type.Array(Hash)),
    licenses: Type.Optional(licenses),
    properties: Type.Array(
      Type.Object({ name: Type.Literal('atoll:part'), value: Type.String({ minLength: 1 }) }, closed),
      { minItems: 1 },
    ),
  },
  closed,
);
const Application = Type.Object(
  {
    type: Type.Literal('application'),
    'bom-ref': Type.String(),
    name: Type.Literal('atoll'),
    version: Type.String(),
    description: Type.String(),
    licenses,
  },
  closed,
);
const Bill = Type.Object(
  {
    bomFormat: Type.Literal('CycloneDX'),
    specVersion: Type.Literal('1.5'),
    version: Type.Literal(1),
    metadata: Type.Object({ component: Application }, closed),
    components: Type.Array(Component, { minItems: 100 }),
  },
  closed,
);
const check = TypeCompiler.Compile(Bill);

const directory = mkdtempSync(join(tmpdir(), 'atoll-sbom-'));
const write = (name: string) => {
  const path = join(directory, name);
  const { exitCode, stderr } = Bun.spawnSync(['node', join(root, 'scripts/sbom.mjs'), path]);
  expect(stderr.toString()).toBe('');
  expect(exitCode).toBe(0);
  return readFileSync(path, 'utf8');
};
const text = write('1.json');
rmSync(directory, { recursive: true, force: true });
const bill = JSON.parse(text) as {
  components: {
    'bom-ref': string;
    name: string;
    version: string;
    purl: string;
    hashes?: object[];
    properties: { value: string }[];
  }[];
};
const has = (purl: string) => bill.components.some(component => component.purl === purl);

type NpmEntry = {
  name?: string;
  version?: string;
  integrity?: string;
  inBundle?: boolean;
  os?: string | string[];
  cpu?: string | string[];
  libc?: string | string[];
};
type NpmLock = { packages: Record<string, NpmEntry> };
const lockOf = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8')) as NpmLock;
const purlOf = (path: string, { name, version }: { name?: string; version?: string }) =>
  `pkg:npm/${(name ?? path.split('node_modules/').at(-1) ?? '').replace('@', '%40')}@${version}`;
/** Packages bundled with npm have no digests of their own: npm's covers them. */
const bundled = new Set(
  Object.entries(lockOf('templates/base/npm/package-lock.json').packages).flatMap(([path, entry]) =>
    entry.inBundle ? [purlOf(path, entry)] : [],
  ),
);

test('the bill of materials has the form of CycloneDX', () => {
  expect([...check.Errors(bill)].slice(0, 3)).toEqual([]);
  expect(new Set(bill.components.map(component => component['bom-ref'])).size).toBe(bill.components.length);
});

test('it names every package of the lock files, with its digest', () => {
  const wanted = Object.entries(lockOf('package-lock.json').packages).flatMap(([path, entry]) =>
    path === '' || !entry.integrity || !isForSupportedMachines(entry) ? [] : [purlOf(path, entry)],
  );
  expect(wanted.length).toBeGreaterThan(50);
  expect(wanted.filter(purl => !has(purl))).toEqual([]);
  const bare = bill.components.filter(
    ({ purl, hashes }) => !purl.startsWith('pkg:deb/') && !hashes?.length && !bundled.has(purl),
  );
  expect(bare.map(({ purl }) => purl)).toEqual([]);
});

test('it names the runtime, CRIU, the templates’ packages and what the host must have', () => {
  const { version } = JSON.parse(
    readFileSync(join(root, 'node_modules/@oven/bun-linux-x64-baseline/package.json'), 'utf8').toString(),
  ) as { version: string };
  expect(has(`pkg:npm/%40oven/bun-linux-x64-baseline@${version}`)).toBe(true);
  const parts = new Set(bill.components.flatMap(({ properties }) => properties.map(({ value }) => value)));
  const criu = JSON.parse(readFileSync(join(root, 'dist/criu/criu.json'), 'utf8')) as { packages?: object[] };
  expect([...parts].sort()).toEqual(
    expect.arrayContaining([
      'host',
      'platform',
      'template base',
      'template code-interpreter-v1',
      ...(criu.packages ? ['CRIU'] : []),
    ]),
  );
  expect(bill.components.some(({ name, properties }) => name === 'crun' && properties[0]?.value === 'host')).toBe(true);
});

// Nobody may substitute other bytes than those that were reviewed: whatever set-up fetches has a digest in this
// repository, or the distribution's signature.
test('every package of npm and of Python is pinned by its digest', () => {
  for (const file of [
    'package-lock.json',
    'templates/base/npm/package-lock.json',
    'templates/code-interpreter-v1/package-lock.json',
  ]) {
    const loose = Object.entries(lockOf(file).packages).filter(
      ([path, entry]) => path !== '' && !entry.integrity && !entry.inBundle && isForSupportedMachines(entry),
    );
    expect(loose.map(([path]) => path)).toEqual([]);
  }
  const requirements = ['requirements.txt', 'packages.txt', 'uv.txt']
    .flatMap(file => readFileSync(join(root, 'templates/code-interpreter-v1/install', file), 'utf8').split('\n'))
    .filter(line => line !== '' && !line.trimStart().startsWith('#'));
  expect(
    requirements.filter(line => !/^[A-Za-z0-9._-]+==\S+( ; .*)? \\$|^ {4}--hash=sha256:[0-9a-f]{64}( \\)?$/.test(line)),
  ).toEqual([]);
  for (const file of [
    'package.json',
    'templates/base/npm/package.json',
    'templates/code-interpreter-v1/package.json',
  ]) {
    const manifest = JSON.parse(readFileSync(join(root, file), 'utf8')) as Record<
      'dependencies' | 'devDependencies' | 'optionalDependencies',
      Record<string, string> | undefined
    >;
    const ranges = [manifest.dependencies, manifest.devDependencies, manifest.optionalDependencies]
      .flatMap(list => Object.entries(list ?? {}))
      .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version));
    expect(ranges).toEqual([]);
  }
});
