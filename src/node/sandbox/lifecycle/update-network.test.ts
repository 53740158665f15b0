import { expect, test } from 'bun:test';
import type { RunningRecord } from '../records/record.ts';
import type { Processes } from '../slot/processes.ts';
import { Sandboxes } from '../state/sandboxes.ts';
import { updateNetwork } from './update-network.ts';

const sandboxId = 's';
const executionId = 'e1';

test('output under a policy is in the log before another policy is in force', async () => {
  const sandboxes = new Sandboxes();
  const network = { internetAccess: true, headerRules: { 'a.com': { Key: 'the-first-key' } } };
  sandboxes.add({
    kind: 'running',
    sandboxId,
    record: { sandboxId, executionId, network } as unknown as RunningRecord,
    processes: {} as Processes,
    policyInForce: network,
    diskFailed: false,
  });
  const steps: unknown[] = [];
  const inForce = () => {
    const state = sandboxes.get(sandboxId);
    return state?.kind === 'running' ? state.record.network : undefined;
  };
  const parts = {
    sandboxes,
    records: { write: async () => void steps.push('write') },
    egress: { trusted: () => undefined, update: async () => void steps.push('update') },
    logs: { write: () => {}, catchUp: async () => void steps.push(['catch up', inForce()]) },
  };
  const target = { sandboxId, executionId };
  await updateNetwork(parts, target, { internetAccess: false });
  expect(steps).toEqual([['catch up', network], 'write', 'update']);
  expect(inForce()).toEqual({ internetAccess: false });
  // Nothing is replaced, so nothing has to be searched first.
  await updateNetwork(parts, target, { internetAccess: false });
  expect(steps).toHaveLength(3);
  // An agent that does not answer (there is none here) does not keep a policy from taking effect.
  const silent = { ...parts, egress: { ...parts.egress, trusted: () => 'certificates' } };
  for (let round = 0; round < 2; round++) await updateNetwork(silent, target, { internetAccess: true });
  expect(steps.filter(step => step === 'update')).toHaveLength(3);
  expect(inForce()).toEqual({ internetAccess: true });
});
