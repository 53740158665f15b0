import { AtollError } from '../../../base/error.ts';
import type { Slot } from '../../layout.ts';
import { hostTable, type HostTableOptions } from './host-table.ts';
import { tableOf } from './table-name.ts';
import { nft } from './nft.ts';
import { changeVerdicts, ifKernelHas, removeObjects, rulesAreThere, verdictMaps } from './link-verdicts.ts';
import type { Netlink } from '../../native/netlink.ts';
import { createNftQueue } from './nft-queue.ts';
import { Placings } from './placings.ts';
import { declaredBy, type PolicyChains } from './policy-chains.ts';

/** How many policies with rules of their own may be in use at once; each holds memory of the kernel. */
const distinctPoliciesMax = 2048;

/** The policies that are in force in the host table. */
export type PolicyTable = {
  /** Puts the whole table in place, including earlier calls of `assign`. Call it again if the table is gone. */
  install(host: Omit<HostTableOptions, 'installation' | 'policies'>): Promise<void>;
  /**
   * Puts a sandbox under a policy, from its next packet on. Removes the former policy's rules if no other sandbox uses
   * them.
   */
  assign(slot: Slot, chains: PolicyChains): Promise<void>;
  /** From here on nothing passes the link. If somebody has removed the rules, they come back without it. */
  withdraw(slot: Slot): void;
  /**
   * Does work that fails without the rules; if somebody has removed them, does it again once they are back. Errors:
   * those of `work`, and `unavailable` if they do not come back within some seconds.
   */
  whenThere<T>(work: () => T | Promise<T>): Promise<T>;
};

type Declared = {
  chains: PolicyChains;
  users: Set<number>;
  /** Settles when the rules are there. */
  ready: Promise<void>;
};

/**
 * Sandboxes whose policies lead to the same rules share one copy, so that most creates and updates change only map
 * entries. `netfilter` and `apply`, which applies a script as one transaction, act on the same network namespace.
 */
export function createPolicyTable(installation: number, netfilter: Netlink, apply = nft): PolicyTable {
  const assigned = new Map<number, { slot: Slot; chains: PolicyChains }>();
  const queue = createNftQueue(apply);
  const table = tableOf(installation);
  const placings = new Placings(() => rulesAreThere(netfilter, installation));

  const remove = (chains: PolicyChains) => removeObjects(netfilter, installation, declaredBy(chains));
  const { declare, release, inUse } = createDeclared({
    async add({ declarations }) {
      if (placings.last === 0) return;
      const before = placings.begun;
      await placings.whenThere(async () => {
        // Declarations made while a table is being replaced would go with the old one.
        await placings.present;
        // A table whose placing began after this declaration contains it.
        if (placings.last <= before) await queue.run(`table inet ${table} {\n${declarations}}\n`);
      });
    },
    remove: chains => placings.takeOut(() => remove(chains)),
  });

  const switchTo = (slot: Slot, chains: PolicyChains | undefined) => {
    const before = assigned.get(slot.number)?.chains;
    const change = () => changeLink(netfilter, installation, slot, [before, chains]);
    if (!chains) placings.takeOut(change);
    else if (placings.last > 0) change();
    if (chains) assigned.set(slot.number, { slot, chains });
    else assigned.delete(slot.number);
    return before;
  };

  /** Updates a table that was just put in place: changes made meanwhile may have gone to the old one. */
  const catchUp = (inTable: typeof assigned, all: PolicyChains[]) => {
    for (const [number, { slot }] of new Map([...inTable, ...assigned])) {
      const fromTo = [inTable, assigned].map(policies => policies.get(number)?.chains);
      ifKernelHas(() => changeLink(netfilter, installation, slot, fromTo));
    }
    const keys = new Set(inUse().map(({ key }) => key));
    for (const chains of all) if (!keys.has(chains.key)) ifKernelHas(() => remove(chains));
  };

  return {
    async install(host) {
      const inTable = new Map(assigned);
      const policies = [...inTable.values()].map(({ slot: { interfaceName }, chains }) => ({ interfaceName, chains }));
      const all = inUse();
      const script = `${hostTable({ installation, ...host, policies })}${declaredBeside(table, all, policies)}`;
      await placings.place(async () => {
        await apply(script);
        catchUp(inTable, all);
      });
    },
    async assign(slot, chains) {
      await declare(chains, slot.number);
      try {
        const before = await placings.whenThere(() => switchTo(slot, chains));
        if (before && before.key !== chains.key) release(before, slot.number);
      } catch (error) {
        if (assigned.get(slot.number)?.chains.key !== chains.key) release(chains, slot.number);
        throw error;
      }
    },
    withdraw(slot) {
      const before = switchTo(slot, undefined);
      if (before) release(before, slot.number);
    },
    whenThere: work => placings.whenThere(work),
  };
}

/** The declared policies, each once. `add` and `remove` act in the kernel. */
function createDeclared({
  add,
  remove,
}: {
  add(chains: PolicyChains): Promise<void>;
  remove(chains: PolicyChains): void;
}) {
  const declared = new Map<string, Declared>();
  return {
    async declare(chains: PolicyChains, user: number): Promise<void> {
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
      const entry: Declared = { chains, users: new Set([user]), ready: add(chains) };
      declared.set(chains.key, entry);
      await entry.ready.catch(error => {
        if (declared.get(chains.key) === entry) declared.delete(chains.key);
        throw error;
      });
    },
    /** The user has another policy, or none; the last user's release removes the policy. */
    release(chains: PolicyChains, user: number): void {
      const known = declared.get(chains.key);
      if (!known?.users.delete(user) || known.users.size > 0) return;
      declared.delete(chains.key);
      remove(chains);
    },
    inUse: () => [...declared.values()].map(({ chains }) => chains),
  };
}

/** Makes the chains of the second policy judge a link in place of those of the first. */
function changeLink(
  netfilter: Netlink,
  installation: number,
  { interfaceName }: Slot,
  [from, to]: (PolicyChains | undefined)[],
): void {
  const changes = verdictMaps.map(map => ({ map, interfaceName, from: from?.chains[map], to: to?.chains[map] }));
  changeVerdicts(netfilter, installation, changes);
}

/** Declares policies that are not in force yet, for sandboxes that are being made. */
function declaredBeside(table: string, all: PolicyChains[], inForce: { chains: PolicyChains }[]): string {
  const keys = new Set(inForce.map(({ chains }) => chains.key));
  const declarations = all.filter(({ key }) => !keys.has(key)).map(chains => chains.declarations);
  return `table inet ${table} {\n${declarations.join('')}}\n`;
}
