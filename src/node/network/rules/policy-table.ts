import { AtollError } from '../../../base/error.ts';
import type { Slot } from '../../layout.ts';
import { hostTable, type HostTableOptions } from './host-table.ts';
import { tableOf } from './table-name.ts';
import { nft } from './nft.ts';
import { changeVerdicts, removeObjects, verdictMaps } from './link-verdicts.ts';
import type { Netlink } from '../../native/netlink.ts';
import { createNftQueue } from './nft-queue.ts';
import { declaredBy, type PolicyChains } from './policy-chains.ts';

/** Policies that may be in use at once with rules of their own; each holds memory of the kernel. */
const distinctPoliciesMax = 2048;

/** The policies that are in force in the host table. */
export type PolicyTable = {
  /** Puts the whole table in place, with what `assign` was told before. Again where it is gone. */
  install(host: Omit<HostTableOptions, 'installation' | 'policies'>): Promise<void>;
  /**
   * Puts a sandbox under a policy, from its next packet on. The former one's rules go where no other sandbox uses them.
   */
  assign(slot: Slot, chains: PolicyChains): Promise<void>;
  /** From here on nothing passes the link. */
  withdraw(slot: Slot): void;
};

type Declared = {
  chains: PolicyChains;
  users: Set<number>;
  /** Settles when the rules are there. */
  ready: Promise<void>;
};

/**
 * Sandboxes whose policies come to the same rules share one copy, so that most creates and updates change map entries
 * only.
 */
export function createPolicyTable(installation: number, netfilter: Netlink): PolicyTable {
  const assigned = new Map<number, { slot: Slot; chains: PolicyChains }>();
  const declared = new Map<string, Declared>();
  const queue = createNftQueue();
  const table = tableOf(installation);
  let installed = false;
  /** Settles when the table is in place: what is declared while it comes would go with the one before. */
  let installing = Promise.resolve();

  const declare = async (chains: PolicyChains, user: number) => {
    if (chains.declarations === '') return;
    const known = declared.get(chains.key);
    if (known) {
      known.users.add(user);
      return known.ready;
    }
    if (declared.size >= distinctPoliciesMax)
      throw new AtollError(
        'unavailable',
        `this node has ${distinctPoliciesMax} different network policies in use, its maximum`,
      );
    const entry: Declared = { chains, users: new Set([user]), ready: Promise.resolve() };
    declared.set(chains.key, entry);
    if (installed) entry.ready = installing.then(() => queue.run(`table inet ${table} {\n${chains.declarations}}\n`));
    await entry.ready.catch(error => {
      if (declared.get(chains.key) === entry) declared.delete(chains.key);
      throw error;
    });
  };

  const release = (chains: PolicyChains, user: number) => {
    const known = declared.get(chains.key);
    if (!known?.users.delete(user) || known.users.size > 0) return;
    declared.delete(chains.key);
    if (installed) removeObjects(netfilter, installation, declaredBy(chains));
  };

  const switchTo = (slot: Slot, chains: PolicyChains | undefined) => {
    const before = assigned.get(slot.number)?.chains;
    if (installed) {
      const changes = verdictMaps.map(map => ({
        map,
        interfaceName: slot.interfaceName,
        from: before?.chains[map],
        to: chains?.chains[map],
      }));
      changeVerdicts(netfilter, installation, changes);
    }
    if (chains) assigned.set(slot.number, { slot, chains });
    else assigned.delete(slot.number);
    return before;
  };

  return {
    async install(host) {
      const policies = [...assigned.values()].map(({ slot: { interfaceName }, chains }) => ({ interfaceName, chains }));
      const all = [...declared.values()].map(({ chains }) => chains);
      const done = nft(`${hostTable({ installation, ...host, policies })}${declaredBeside(table, all, policies)}`);
      installing = done.catch(() => {}); // whoever installs hears it
      await done;
      installed = true;
    },
    async assign(slot, chains) {
      await declare(chains, slot.number);
      const before = switchTo(slot, chains);
      if (before && before.key !== chains.key) release(before, slot.number);
    },
    withdraw(slot) {
      const before = switchTo(slot, undefined);
      if (before) release(before, slot.number);
    },
  };
}

/** Declares what no policy in force does: what a sandbox that is being made will be under. */
function declaredBeside(table: string, all: PolicyChains[], inForce: { chains: PolicyChains }[]): string {
  const keys = new Set(inForce.map(({ chains }) => chains.key));
  const declarations = all.filter(({ key }) => !keys.has(key)).map(chains => chains.declarations);
  return `table inet ${table} {\n${declarations.join('')}}\n`;
}
