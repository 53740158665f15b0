import { expect, test } from 'bun:test';
import type { PauseFacts } from '../../protocol/cluster.ts';
import type { MemoryFacts, NodeInfo } from '../../protocol/node.ts';
import { misfit } from './misfit.ts';

const here: MemoryFacts = {
  architecture: 'x86_64',
  kernel: '6.1.0-13-amd64',
  criu: '4.1',
  cpuFlags: ['avx2', 'sse2'],
  agent: 'a1',
};
const facts: PauseFacts = { kept: 'memory', sizeBytes: 1, layers: [], driver: 'crun', memory: here };
const machine = (changed: Partial<MemoryFacts>, others: Partial<NodeInfo> = {}) =>
  ({ memoryByDriver: { crun: { kept: true } }, restores: { ...here, ...changed }, ...others }) as unknown as NodeInfo;

test('a machine that is the same or newer accepts memory', () => {
  for (const changed of [
    {},
    { kernel: '6.1.0-20-amd64' },
    { kernel: '6.12.3' },
    { criu: '4.2' },
    { cpuFlags: ['avx2', 'avx512f', 'sse2'] },
  ])
    expect(misfit(facts, machine(changed), true)).toBe(null);
});

test('a machine that lacks something is refused with the reason', () => {
  const cases: [Partial<MemoryFacts>, string][] = [
    [{ architecture: 'aarch64' }, 'it is a aarch64 machine, not x86_64'],
    [{ cpuFlags: ['sse2'] }, 'its processors lack avx2'],
    [{ kernel: '5.19.17' }, 'its kernel 5.19.17 is older than 6.1.0-13-amd64'],
    [{ criu: '3.17.1' }, 'its CRIU 3.17.1 is older than 4.1'],
    [{ criu: null }, 'its CRIU (none) is older than 4.1'],
    [{ agent: 'b2' }, 'it has another build of the agent'],
  ];
  for (const [changed, reason] of cases) expect(misfit(facts, machine(changed), true)).toBe(reason);
  const unable = { memoryByDriver: { crun: { kept: false as const, reason: 'no CRIU' } } };
  expect(misfit(facts, machine({}, unable), true)).toBe('memory is not kept there (no CRIU)');
  expect(misfit(facts, undefined, true)).toBe('it has not said what it restores');
});

test('a machine that has kept the earlier agent besides its own accepts its memory', () => {
  const kept = machine({ agent: 'b2' }, { earlierAgents: ['c3', 'a1'] });
  expect(misfit(facts, kept, true)).toBe(null);
  const others = machine({ agent: 'b2' }, { earlierAgents: ['c3'] });
  expect(misfit(facts, others, true)).toBe('it has another build of the agent');
});

test('files alone go to any machine of the architecture with the driver', () => {
  const lesser = machine({ cpuFlags: [], kernel: '5.19', criu: null, agent: 'b2' });
  expect(misfit(facts, lesser, false)).toBe(null);
  expect(misfit({ ...facts, kept: 'filesystem' }, lesser, true)).toBe(null);
  expect(misfit({ ...facts, driver: 'gvisor' }, lesser, false)).toBe('it has no driver gvisor');
});
