import { expect, test } from 'bun:test';
import { cpuFlags } from './memory-facts.ts';

test('the features of processors are read for x86 and Arm', () => {
  expect(cpuFlags('processor\t: 0\nflags\t\t: sse2 fpu avx2\nbugs\t: x\n\nprocessor\t: 1\nflags\t: other\n')).toEqual([
    'avx2',
    'fpu',
    'sse2',
  ]);
  expect(cpuFlags('processor\t: 0\nFeatures\t: fp asimd\n')).toEqual(['asimd', 'fp']);
  expect(cpuFlags('')).toEqual([]);
});
