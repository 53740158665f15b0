import { expect, test } from 'bun:test';
import type { EgressPolicy } from '../../../protocol/network/network.ts';
import { slotOf } from '../../layout.ts';
import type { PolicyChains } from '../rules/policy-chains.ts';
import { detoursOf } from './detours.ts';
import { createKnownSandboxes, type ConnectedSandbox } from './known-sandboxes.ts';
import { SandboxPolicies } from './sandbox-policies.ts';

const open: EgressPolicy = { internetAccess: true };
const closed: EgressPolicy = { internetAccess: false };
const byName: EgressPolicy = { internetAccess: false, allowOut: ['a.test'] };

/** Policies with packet rules and a proxy that the test provides: `done` records what they were told, in order. */
function scene({ refuses = false } = {}) {
  const done: string[] = [];
  const failing = new Set<string>();
  const gate = { opens: Promise.resolve() };
  const told = new Set<number>();
  const act = async (what: string) => {
    done.push(what);
    await gate.opens;
    if (failing.has(what)) throw new Error(`${what} fails`);
  };
  const known = createKnownSandboxes(() => 0);
  const namesOf = ({ key, chains }: PolicyChains) => (chains.outgoing === undefined ? 'closed' : key);
  const policies = new SandboxPolicies({
    netfilter: { exchange: () => [], dump: async function* () {}, close() {} },
    table: {
      install: async () => {},
      assign: ({ number }, chains) => act(`rules ${number} ${namesOf(chains)}`),
      withdraw: ({ number }) => void done.push(`withdraw ${number}`),
      whenThere: async work => await work(),
    },
    known,
    forgotten: {
      leave: ({ address }) => void done.push(`forget ${address}`),
      free: ({ address }) => act(`free ${address}`),
      stop: async () => {},
    },
    detours: detoursOf({ platform: undefined } as never, []),
    bandwidthBytesPerSecond: undefined,
  });
  const proxy = {
    knows: (slot: number) => told.has(slot),
    async set(slot: number, policy: EgressPolicy) {
      told.add(slot);
      await act(`proxy ${slot} ${JSON.stringify(policy.allowOut ?? [])}`).catch(error => {
        told.delete(slot);
        throw error;
      });
      if (refuses) throw new Error('no proxy could be started');
    },
    remove: async (slot: number) => void (told.delete(slot), done.push(`proxy forgets ${slot}`)),
    stop: async () => void done.push('proxy stops'),
  };
  const sandbox = (number: number, sandboxId = `s${number}`, interfaceName = 'none'): ConnectedSandbox => ({
    sandboxId,
    slot: { ...slotOf(15, number), interfaceName },
    namespace: { netlinkSocket: () => -1 } as never,
  });
  /** The calls since the last time. */
  const took = () => done.splice(0);
  return { policies, proxy, known, failing, gate, sandbox, took };
}
const address = (number: number) => slotOf(15, number).address;

test('a sandbox is let out when the proxy knows it, the one before is forgotten, and its rules are there', async () => {
  const { policies, proxy, known, sandbox, took } = scene();
  await policies.install(proxy);
  await policies.apply(sandbox(1), byName);
  expect(took()).toEqual(['proxy 1 ["a.test"]', `free ${address(1)}`, expect.stringMatching(/^rules 1 [0-9a-f]{16}$/)]);
  expect(known.get(1)).toMatchObject({ sandbox: { sandboxId: 's1' }, policy: { source: byName } });
});

test('a proxy gets the policies that need it, and all later ones of those sandboxes', async () => {
  const { policies, proxy, sandbox, took } = scene();
  await policies.install(proxy);
  await policies.apply(sandbox(1), open);
  expect(took()).toEqual([`free ${address(1)}`, 'rules 1 open']);
  await policies.apply(sandbox(1), byName);
  await policies.apply(sandbox(1), open);
  expect(took().filter(what => what.startsWith('proxy'))).toEqual(['proxy 1 ["a.test"]', 'proxy 1 []']);
});

test('a proxy that can’t start stops only the sandboxes that need it', async () => {
  const { policies, proxy, known, sandbox } = scene({ refuses: true });
  await policies.install({ ...proxy, knows: () => false });
  await policies.apply(sandbox(1), closed);
  await expect(policies.apply(sandbox(2), byName)).rejects.toThrow('no proxy could be started');
  expect([known.get(1) !== undefined, known.get(2)]).toEqual([true, undefined]);
  // A proxy that knows the sandbox has connections under the earlier policy.
  const { policies: others, proxy: knowing, sandbox: other } = scene({ refuses: true });
  await others.install({ ...knowing, knows: () => true });
  await expect(others.apply(other(1), closed)).rejects.toThrow('no proxy could be started');
});

test('without a proxy, policies that need none are in force', async () => {
  const { policies, known, sandbox, took } = scene();
  await policies.apply(sandbox(1), closed);
  await policies.stop();
  expect([took(), known.get(1)?.policy.source]).toEqual([[`free ${address(1)}`, 'rules 1 closed'], closed]);
});

test('policies of sandboxes that ran before are put in force at a new proxy', async () => {
  const { policies, proxy, known, sandbox, took } = scene();
  await policies.apply(sandbox(1), closed);
  await policies.apply(sandbox(2), byName);
  took();
  await policies.install(proxy);
  expect(took()).toEqual([
    ...['proxy 1 []', 'rules 1 closed', 'proxy 2 ["a.test"]'],
    expect.stringMatching(/^rules 2 [0-9a-f]{16}$/),
  ]);
  expect([...known.all()]).toHaveLength(2);
  await policies.stop();
  expect(took()).toEqual(['proxy stops']);
});

test('a change that fails leaves a sandbox as it was known', async () => {
  const { policies, proxy, known, failing, sandbox, took } = scene();
  await policies.install(proxy);
  await policies.apply(sandbox(1), open);
  failing.add(`free ${address(1)}`);
  took();
  await expect(policies.apply(sandbox(1), closed)).rejects.toThrow('fails');
  expect([took().includes('rules 1 closed'), known.get(1)?.policy.source]).toEqual([false, open]);
});

test('a policy is replaced only for the sandbox that has the slot', async () => {
  const { policies, known, sandbox, took } = scene();
  await expect(policies.update(sandbox(1), closed)).rejects.toMatchObject({ code: 'not_found' });
  await policies.apply(sandbox(1), open);
  await expect(policies.update(sandbox(1, 'another'), closed)).rejects.toMatchObject({ code: 'not_found' });
  expect([took(), known.get(1)?.policy.source]).toEqual([[`free ${address(1)}`, 'rules 1 open'], open]);
  // Then its open connections are looked at, which this namespace can't list.
  await expect(policies.update(sandbox(1), closed)).rejects.toThrow('errno 9');
  expect([took(), known.get(1)?.policy.source]).toEqual([[`free ${address(1)}`, 'rules 1 closed'], closed]);
});

test('a slot whose sandbox has sent something is left behind, and is nobody’s', async () => {
  const { policies, proxy, known, sandbox, took } = scene();
  await policies.install(proxy);
  for (const number of [1, 2]) await policies.apply(sandbox(number), byName);
  took();
  // The link is gone, or was not used; a link that nobody had is not looked at.
  await policies.remove(sandbox(1).slot);
  expect([took(), known.get(1)]).toEqual([['withdraw 1', 'proxy forgets 1', `forget ${address(1)}`], undefined]);
  await policies.remove(sandbox(1).slot);
  expect(took()).toEqual(['withdraw 1', 'proxy forgets 1']);
  expect(known.get(2)).toBeDefined();
});

test('changes of one slot come one after the other, those of others do not wait', async () => {
  const { policies, gate, sandbox, took } = scene();
  const { promise, resolve } = Promise.withResolvers<void>();
  gate.opens = promise;
  const changes = [
    policies.apply(sandbox(1), open),
    policies.apply(sandbox(1), closed),
    policies.remove(sandbox(1).slot),
  ];
  const other = policies.apply(sandbox(2), open);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  expect(took()).toEqual([`free ${address(1)}`, `free ${address(2)}`]);
  resolve();
  await Promise.all([...changes, other]);
  const ofFirst = took().filter(what => !what.endsWith('2 open'));
  expect(ofFirst).toEqual([
    ...['rules 1 open', `free ${address(1)}`, 'rules 1 closed', 'withdraw 1', `forget ${address(1)}`],
  ]);
});
