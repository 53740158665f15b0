import { expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sha256Hex } from '../../src/base/crypto/secret.ts';
import { capabilities } from '../../src/node/drivers/crun/config.ts';
import { testUnless } from '../support/skip.ts';

const root = join(import.meta.dir, '../..');
/** The default of Podman, Buildah and others, as packaged by Debian, in the version that the document describes. */
const usual = '/usr/share/containers/seccomp.json';
const usualDigest = 'cc374cf23846ce1f62f4dc807a8e2b8673c783c6f56cb475467621035d281e6c';

type Rule = {
  names: string[];
  action: string;
  args?: object[] | null;
  includes?: { caps?: string[]; arches?: string[] };
  excludes?: { caps?: string[] };
};
type Profile = { syscalls: Rule[] };

const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Profile;
const known = (names: string[]) => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-seccomp-'));
  try {
    const [compiler, listed] = [join(directory, 'compile'), join(directory, 'profile')];
    const made = Bun.spawnSync(['gcc', '-o', compiler, join(root, 'native/seccomp/compile.c'), '-lseccomp']);
    expect(made.stderr.toString()).toBe('');
    writeFileSync(listed, ['default 1', ...names.map(name => `number ${name}`), ''].join('\n'));
    const numbersOn = (architecture: string) => {
      const { stdout, exitCode } = Bun.spawnSync([compiler, architecture, listed, '/dev/null']);
      expect(exitCode).toBe(0);
      return stdout.toString().trim().split('\n');
    };
    return new Set(
      ['x86_64', 'aarch64'].flatMap(numbersOn).flatMap(line => {
        const [name = '', number] = line.split(' ');
        return Number(number) >= 0 ? [name] : [];
      }),
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
};

/**
 * Calls that a profile allows with these capabilities, on x86-64 or arm64; those that depend on arguments are listed
 * separately.
 */
function allowedBy(profile: Profile, isConditional: boolean): Set<string> {
  const holds = ({ includes = {}, excludes = {} }: Rule) =>
    (includes.caps ?? []).every(name => capabilities.includes(name)) &&
    !(excludes.caps ?? []).some(name => capabilities.includes(name)) &&
    (includes.arches ?? ['amd64']).some(name => ['amd64', 'arm64'].includes(name));
  const rules = profile.syscalls.filter(
    rule => rule.action === 'SCMP_ACT_ALLOW' && holds(rule) && (rule.args ?? []).length > 0 === isConditional,
  );
  return new Set(rules.flatMap(({ names }) => names));
}

/** Names in the first column of the table below a heading of docs/seccomp.md. */
function documented(heading: string): string[] {
  const text = readFileSync(join(root, 'docs/seccomp.md'), 'utf8');
  const section = text.split(/^## /m).find(part => part.startsWith(heading)) ?? '';
  return section
    .split('\n')
    .filter(line => line.startsWith('| `'))
    .flatMap(line => [...(line.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name))
    .sort();
}

test('the profile names system calls that libseccomp knows, each once without conditions', () => {
  const { syscalls } = read(join(root, 'native/seccomp/profile.json'));
  const names = syscalls.flatMap(rule => rule.names);
  const there = known([...new Set(names)]);
  expect(names.filter(name => !there.has(name))).toEqual([]);
  const plain = syscalls.filter(rule => (rule.args ?? []).length === 0).flatMap(rule => rule.names);
  expect(plain.length).toBeGreaterThan(200);
  expect(plain.length).toBe(new Set(plain).size);
});

const reason = !existsSync(usual)
  ? `${usual} is not there (Debian: golang-github-containers-common)`
  : sha256Hex(readFileSync(usual)) !== usualDigest
    ? `${usual} is of another version than docs/seccomp.md compares with`
    : undefined;

testUnless(reason)('docs/seccomp.md has every difference from the usual profile', () => {
  const [ours, theirs] = [read(join(root, 'native/seccomp/profile.json')), read(usual)];
  const [allowed, conditional] = [allowedBy(ours, false), allowedBy(ours, true)];
  const usually = allowedBy(theirs, false);
  const there = known([...usually]);
  expect(usually.size).toBeGreaterThan(300);
  expect([...usually].filter(name => there.has(name) && !allowed.has(name) && !conditional.has(name)).sort()).toEqual(
    documented('Refused here'),
  );
  expect([...allowed].filter(name => !usually.has(name)).sort()).toEqual(documented('Allowed here'));
  expect([...conditional].sort()).toEqual(documented('Allowed by their arguments'));
});
