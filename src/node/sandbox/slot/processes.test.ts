import { expect, test } from 'bun:test';
import { slotOf } from '../../layout.ts';
import { createProcessControl, type Processes } from './processes.ts';

test('a slot that could not be freed is tried again, and ended processes are not ended twice', async () => {
  const slot = slotOf(0, 1);
  const steps: string[] = [];
  const failures = ['remove policy', 'empty', 'empty'];
  const step = async (name: string) => {
    steps.push(name);
    if (failures[0] === name) throw new Error(`${failures.shift()} failed`);
  };
  let later: (() => Promise<void>) | undefined;
  const control = createProcessControl({
    helper: { call: async () => {} },
    egress: { countLast: () => {}, remove: () => step('remove policy') },
    volumes: { release: () => {} },
    slotHost: { release: () => step('empty') },
    cleanups: { begin: (_name: string, free: () => Promise<void>) => void (later = free) },
    mtu: 1500,
    ipv6: false,
  } as unknown as Parameters<typeof createProcessControl>[0]);
  const processes = {
    slot,
    driver: { hasten: () => {}, endProcesses: async () => {} },
    namespace: { close: () => void step('close') },
    ended: Promise.resolve(),
  } as unknown as Processes;
  await expect(control.release(processes)).rejects.toThrow('remove policy failed');
  await expect(later?.()).rejects.toThrow('empty failed');
  await expect(later?.()).rejects.toThrow('empty failed');
  await later?.();
  expect(steps).toEqual(['remove policy', 'remove policy', 'close', 'empty', 'empty', 'empty']);
});
