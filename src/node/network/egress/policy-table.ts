import { AtollError } from '../../../base/error.ts';
import type { Slot } from '../../layout.ts';
import { hostTable, tableOf } from '../host-table.ts';
import { nft } from '../nft.ts';
import { changeVerdicts, type VerdictChange } from './link-verdicts.ts';
import type { Netlink } from './netlink.ts';
import { removalOf, type PolicyChains } from './policy-chains.ts';

/** Policies that may be in use at once with rules of their own; each holds memory of the kernel. */
export const distinctPoliciesMax = 2048;

/** The policies that are in force in the host table. */
export type PolicyTable = {
  /** Puts the whole table in place, with what `assign` was told before. */
  install(resolvers: string[]): Promise<void>;
  /** Puts a sandbox under a policy, from its next packet on. */
  assign(slot: Slot, chains: PolicyChains): Promise<void>;
  /** From here on nothing leaves the link. The rules are gone when no other sandbox uses them. */
  withdraw(slot: Slot): Promise<void>;
};

/** Sandboxes whose policies come to the same rules share one copy, so that most creates and updates change two map entries only. */
export function createPolicyTable(installation: number, netfilter: Netlink): PolicyTable {
  const assigned = new Map<number, { slot: Slot; chains: PolicyChains }>();
  const declared = new Map<string, { chains: PolicyChains; users: Set<number> }>();
  let installed = false;
  let last: Promise<unknown> = Promise.resolve();

  /** What adds or removes rules happens in order: a rule set that is being removed may be wanted again. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work);
    last = turn.catch(() => {});
    return turn;
  };

  const declare = async (chains: PolicyChains, user: number) => {
    if (chains.declarations === '') return;
    const known = declared.get(chains.key);
    if (known && known.users.size > 0) return void known.users.add(user);
    await inTurn(async () => {
      const present = declared.get(chains.key);
      if (present) return void present.users.add(user);
      if (declared.size >= distinctPoliciesMax) throw new AtollError('unavailable', `this node has ${distinctPoliciesMax} different network policies in use, its maximum`);
      if (installed) await nft(`table inet ${tableOf(installation)} {\n${chains.declarations}}\n`);
      declared.set(chains.key, { chains, users: new Set([user]) });
    });
  };

  const release = async (chains: PolicyChains, user: number) => {
    const known = declared.get(chains.key);
    if (!known?.users.delete(user) || known.users.size > 0) return;
    await inTurn(async () => {
      if (known.users.size > 0 || declared.get(chains.key) !== known) return;
      if (installed) await nft(removalOf(tableOf(installation), chains));
      declared.delete(chains.key);
    });
  };

  const switchTo = (slot: Slot, chains: PolicyChains | undefined) => {
    const before = assigned.get(slot.number)?.chains;
    const change = (map: VerdictChange['map'], kind: 'outgoing' | 'redirect'): VerdictChange => ({
      map,
      interfaceName: slot.interfaceName,
      from: before?.[kind],
      to: chains?.[kind],
    });
    if (installed) changeVerdicts(netfilter, installation, [change('outgoing_by_link', 'outgoing'), change('redirect_by_link', 'redirect')]);
    if (chains) assigned.set(slot.number, { slot, chains });
    else assigned.delete(slot.number);
    return before;
  };

  return {
    async install(resolvers) {
      const policies = [...assigned.values()].map(({ slot, chains }) => ({ interfaceName: slot.interfaceName, chains }));
      await inTurn(() => nft(hostTable({ installation, resolvers, policies })));
      installed = true;
    },
    async assign(slot, chains) {
      await declare(chains, slot.number);
      const before = switchTo(slot, chains);
      if (before && before.key !== chains.key) await release(before, slot.number);
    },
    async withdraw(slot) {
      const before = switchTo(slot, undefined);
      if (before) await release(before, slot.number);
    },
  };
}
