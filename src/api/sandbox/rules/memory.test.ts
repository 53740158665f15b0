import { expect, test } from 'bun:test';
import type { MemoryAbility, NodeInfo, NodeProtocol } from '../../../protocol/node.ts';
import { memoryUnavailable, requireMemory, requireMemoryOfDriver } from './memory.ts';

const kept: MemoryAbility = { kept: true };
const notKept: MemoryAbility = { kept: false, reason: 'no CRIU' };
const execution = { sandboxId: 'i1', executionId: 'e1' };
const refusal = {
  code: 'precondition',
  detail: memoryUnavailable,
  message: "fork: the memory of sandboxes can't be kept here (no CRIU); pause it",
};

test('an operation that needs memory is refused where memory can’t be kept, with advice', async () => {
  const asked: object[] = [];
  const node = (ability: MemoryAbility) =>
    ({ memoryAbility: async (ref: object) => (asked.push(ref), ability) }) as unknown as NodeProtocol;
  await requireMemory(node(kept), execution, 'fork', 'pause it');
  await expect(requireMemory(node(notKept), execution, 'fork', 'pause it')).rejects.toMatchObject(refusal);
  expect(asked).toEqual([execution, execution]);
});

test('a new sandbox is judged by its driver, or by the default driver where it names none', async () => {
  const node = (memory: MemoryAbility, memoryByDriver: NodeInfo['memoryByDriver']) =>
    ({ info: async () => ({ memory, memoryByDriver }) }) as unknown as NodeProtocol;
  const able = node(kept, { crun: kept, gvisor: notKept });
  for (const driver of [undefined, 'crun'] as const) await requireMemoryOfDriver(able, driver, 'fork', 'pause it');
  const unable = node(notKept, { crun: kept, gvisor: notKept });
  for (const driver of [undefined, 'gvisor'] as const)
    await expect(requireMemoryOfDriver(unable, driver, 'fork', 'pause it')).rejects.toMatchObject(refusal);
  // A driver that the machine lacks makes the create itself fail.
  await requireMemoryOfDriver(node(notKept, {}), 'crun', 'fork', 'pause it');
});
