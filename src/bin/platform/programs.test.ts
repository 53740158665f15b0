import { afterAll, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fingerprintOf } from '../../node/agent-client/copy.ts';
import { forgetOtherPrograms, keepPrograms } from './programs.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-programs-'));
afterAll(() => rmSync(folder, { recursive: true }));

const built = {
  helperBinary: join(folder, 'dist/helper'),
  agentDir: join(folder, 'dist/agent'),
  builderDir: join(folder, 'dist/builder'),
};

/** As set-up does it: removes the former programs and gives others their names. */
function build(version: string): void {
  rmSync(join(folder, 'dist'), { recursive: true, force: true });
  for (const directory of [built.agentDir, built.builderDir]) {
    mkdirSync(join(directory, 'lib'), { recursive: true });
    writeFileSync(join(directory, 'program'), version, { mode: 0o755 });
    writeFileSync(join(directory, 'lib/library'), version);
  }
  mkdirSync(join(folder, 'dist/seccomp'));
  for (const name of ['helper', 'criu-without-tls.so', 'namespace-owner.so', 'seccomp/x64.bpf'])
    writeFileSync(join(folder, 'dist', name), version, { mode: 0o755 });
}

test('a version has its own programs when others have been built, and removes those before it', async () => {
  const dataDir = join(folder, 'data');
  build('one');
  const one = await keepPrograms(dataDir, built);
  expect(await keepPrograms(dataDir, built)).toEqual(one);
  build('the second');
  for (const name of ['helper', 'criu-without-tls.so', 'namespace-owner.so', 'seccomp/x64.bpf'])
    expect(readFileSync(join(dirname(one.helperBinary), name), 'utf8')).toBe('one');
  for (const directory of [one.agentDir, one.builderDir]) {
    expect(readFileSync(join(directory, 'program'), 'utf8')).toBe('one');
    expect(readFileSync(join(directory, 'lib/library'), 'utf8')).toBe('one');
    expect(statSync(join(directory, 'program')).mode & 0o777).toBe(0o755);
  }
  const two = await keepPrograms(dataDir, built);
  expect(readFileSync(join(two.builderDir, 'program'), 'utf8')).toBe('the second');
  forgetOtherPrograms(dataDir, two);
  expect([one, two].map(({ agentDir }) => existsSync(agentDir))).toEqual([false, true]);
  expect(readdirSync(join(dataDir, 'node/built'))).toHaveLength(1);
});

test('an agent is the same one beside another builder', async () => {
  const dataDir = join(folder, 'rebuilt');
  build('one');
  const before = await keepPrograms(dataDir, built);
  rmSync(join(built.builderDir, 'program'));
  writeFileSync(join(built.builderDir, 'program'), 'the second');
  const after = await keepPrograms(dataDir, built);
  expect(after.agentDir).not.toBe(before.agentDir);
  expect(fingerprintOf(after.agentDir)).toBe(fingerprintOf(before.agentDir));
  expect(fingerprintOf(after.builderDir)).not.toBe(fingerprintOf(before.builderDir));
});

test('where nothing can be kept, what set-up has built is used and stays', async () => {
  const dataDir = join(folder, 'full');
  mkdirSync(join(dataDir, 'node'), { recursive: true });
  writeFileSync(join(dataDir, 'node/built'), 'no folder');
  build('one');
  expect(await keepPrograms(dataDir, built)).toEqual(built);
  rmSync(join(dataDir, 'node/built'));
  forgetOtherPrograms(dataDir, built);
  expect(existsSync(join(built.agentDir, 'program'))).toBe(true);
});
