import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { agentDigest, cpuFlags, knownAgentDigest } from './memory-facts.ts';

test('what processors can is read of x86 and Arm', () => {
  expect(cpuFlags('processor\t: 0\nflags\t\t: sse2 fpu avx2\nbugs\t: x\n\nprocessor\t: 1\nflags\t: other\n')).toEqual([
    'avx2',
    'fpu',
    'sse2',
  ]);
  expect(cpuFlags('processor\t: 0\nFeatures\t: fp asimd\n')).toEqual(['asimd', 'fp']);
  expect(cpuFlags('')).toEqual([]);
});

test('two copies of an agent are one agent, whenever they were made; another content is another', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-agent-'));
  try {
    const made = (name: string, text: string, time: number) => {
      mkdirSync(join(folder, name, 'lib'), { recursive: true });
      writeFileSync(join(folder, name, 'lib', 'a'), text);
      utimesSync(join(folder, name, 'lib', 'a'), time, time);
      return agentDigest(join(folder, name));
    };
    const first = await made('one', 'agent', 1_000);
    expect(await made('two', 'agent', 2_000)).toBe(first);
    expect(await made('three', 'agenT', 1_000)).not.toBe(first);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the digest of a copy that is known is not computed again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-agent-'));
  try {
    mkdirSync(join(folder, 'one'));
    writeFileSync(join(folder, 'one', 'a'), 'agent');
    const cache = join(folder, 'digest');
    const first = await knownAgentDigest(join(folder, 'one'), cache);
    expect(first).toBe(await agentDigest(join(folder, 'one')));
    writeFileSync(join(folder, 'one', 'a'), 'changed in place, which nobody does');
    expect(await knownAgentDigest(join(folder, 'one'), cache)).toBe(first);
    mkdirSync(join(folder, 'two'));
    expect(await knownAgentDigest(join(folder, 'two'), cache)).not.toBe(first);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
