import { KeyedMutex } from '../../../base/concurrency/keyed-mutex.ts';
import { AtollError } from '../../../base/error.ts';
import type { EgressPolicy } from '../../../protocol/network/network.ts';
import type { Slot } from '../../layout.ts';
import type { Netlink } from '../../native/netlink.ts';
import type { PolicyTable } from '../rules/policy-table.ts';
import { limitBandwidth } from './bandwidth.ts';
import { closeDenied } from './close-denied.ts';
import type { Detours } from './detours.ts';
import type { ForgottenConnections } from './forget-connections.ts';
import type { ConnectedSandbox, KnownSandboxes } from './known-sandboxes.ts';
import { linkBytes } from './link-bytes.ts';
import { compilePolicy, type CompiledPolicy } from '../../../protocol/network/egress-policy.ts';
import type { Proxy } from './proxies/process.ts';

/** The parts of the way out that put a sandbox's policy in force. */
type PolicyParts = {
  netfilter: Netlink;
  table: PolicyTable;
  known: KnownSandboxes;
  forgotten: ForgottenConnections;
  detours: Detours;
  /** Undefined: no limit. */
  bandwidthBytesPerSecond: number | undefined;
};

/** Puts policies of sandboxes in force; changes of a slot come one after the other. */
export class SandboxPolicies {
  readonly #parts: PolicyParts;
  readonly #changes = new KeyedMutex<number>();
  #proxy: Proxy | undefined;

  constructor(parts: PolicyParts) {
    this.#parts = parts;
  }

  /** Puts the policies of sandboxes that already ran in force, at a proxy that has just started. */
  async install(proxy: Proxy): Promise<void> {
    const { known, detours, table } = this.#parts;
    this.#proxy = proxy;
    for (const { sandbox, policy } of known.all()) {
      await this.#tellProxy(sandbox.slot, policy);
      await table.assign(sandbox.slot, detours.chains(policy));
    }
  }

  /** Lets a sandbox out as far as its policy allows. */
  async apply(sandbox: ConnectedSandbox, source: EgressPolicy): Promise<void> {
    await this.#changes.run(sandbox.slot.number, () => this.#apply(sandbox, source));
  }

  /** Replaces the policy of a sandbox, and cuts what it denies. Fails with `not_found` if the sandbox has ended. */
  async update(sandbox: ConnectedSandbox, source: EgressPolicy): Promise<void> {
    const { known, netfilter } = this.#parts;
    await this.#changes.run(sandbox.slot.number, async () => {
      // The slot may belong to another sandbox by now.
      if (known.get(sandbox.slot.number)?.sandbox.sandboxId !== sandbox.sandboxId)
        throw new AtollError('not_found', `sandbox ${sandbox.sandboxId} has ended`);
      await closeDenied(netfilter, sandbox, await this.#apply(sandbox, source));
    });
  }

  /** Closes the way out of a slot and forgets its sandbox. */
  async remove(slot: Slot): Promise<void> {
    const { table, known, forgotten } = this.#parts;
    await this.#changes.run(slot.number, async () => {
      table.withdraw(slot);
      await this.#proxy?.remove(slot.number);
      // The link is still there, because its network namespace is held open. Most sandboxes have never sent a packet.
      if (known.remove(slot.number) && linkBytes(slot, 'rx') !== 0) forgotten.leave(slot);
    });
  }

  /** Ends the proxy. Packet rules stay in force. */
  async stop(): Promise<void> {
    await this.#proxy?.stop();
  }

  async #apply(sandbox: ConnectedSandbox, source: EgressPolicy): Promise<CompiledPolicy> {
    const { known, detours, table, forgotten, bandwidthBytesPerSecond } = this.#parts;
    const policy = compilePolicy(source);
    const { slot, namespace } = sandbox;
    if (!known.get(slot.number) && bandwidthBytesPerSecond !== undefined)
      limitBandwidth(slot, namespace, bandwidthBytesPerSecond);
    // The proxy comes first: it must know the sandbox when the first connection is redirected to it.
    await this.#tellProxy(slot, policy);
    await forgotten.free(slot);
    await table.assign(slot, detours.chains(policy));
    known.put(sandbox, policy);
    return policy;
  }

  async #tellProxy({ number }: Slot, policy: CompiledPolicy): Promise<void> {
    const uses = this.#parts.detours.usesProxy(policy);
    // Connections that it has accepted under an earlier policy live on in it, so it must hear of all later policies.
    const knows = this.#proxy?.knows(number) === true;
    if (uses === 'not' && !knows) return;
    const told = this.#proxy?.set(number, policy.source);
    // If the proxy could not start, a sandbox that reaches nothing can still be made.
    await (uses === 'wanted' && !knows ? told?.catch(() => {}) : told);
  }
}
