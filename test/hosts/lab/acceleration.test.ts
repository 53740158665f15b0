import { expect, test } from 'bun:test';
import { processorArguments } from './acceleration.ts';

const able = { architecture: 'x64', cpuinfo: 'flags : fpu svm nx', opensKvm: true };

test('a guest of the same type runs on the processor where that can virtualize, and is emulated elsewhere', () => {
  expect(processorArguments('x64', able)).toContain('kvm');
  for (const lacking of [{ cpuinfo: 'flags : fpu nx' }, { opensKvm: false }, { architecture: 'arm64' }])
    expect(processorArguments('x64', { ...able, ...lacking })).toContain('tcg');
  expect(processorArguments('arm64', able)).toContain('neoverse-n1');
});
