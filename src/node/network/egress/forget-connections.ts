import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Slot } from '../../layout.ts';
import { forgetFlows } from '../../native/conntrack.ts';
import { families, openNetlink } from '../../native/netlink.ts';

/** Many are forgotten together, and not more often than this: walking the kernel's connections takes milliseconds. */
const collectMs = 250;
/** How long to wait before another attempt at connections that could not be forgotten. */
const retryMs = 2_000;

/**
 * Makes the kernel forget the connections of sandboxes that are gone: packets that still arrive for them must not
 * reach the next sandbox of the slot.
 */
export type ForgottenConnections = {
  /**
   * Called when the sandbox of this slot is gone. Its connections are forgotten soon, together with those of others.
   */
  leave(slot: Addresses): void;
  /** Resolves when the slot has no connections of an earlier sandbox. Fails if they could not be forgotten. */
  free(slot: Addresses): Promise<void>;
  /** Forgets the connections that wait, and stops. */
  stop(): Promise<void>;
};

/** The addresses that stand for a sandbox outside of it. */
type Addresses = Pick<Slot, 'address' | 'addressV6'>;

/**
 * Opens a netlink socket of its own, because walking the kernel's connections takes time. `ipv6`: whether sandboxes
 * have IPv6.
 */
export function createForgottenConnections(log: Log, ipv6: boolean, forgetAll = forgetFlows): ForgottenConnections {
  const netfilter = openNetlink(families.netfilter);
  /** Addresses for which the kernel may still keep connections. */
  const stale = new Set<string>();
  /** Addresses that are being forgotten, with the end of that attempt. */
  const forgetting = new Map<string, Promise<void>>();
  let last = Promise.resolve();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isStopped = false;

  const wait = (addresses: string[], ms: number) => {
    if (stale.size === 0 && addresses.length > 0 && !isStopped) timer = setTimeout(forget, ms);
    for (const address of addresses) stale.add(address);
  };

  const forget = () => {
    clearTimeout(timer);
    const gone = new Set(stale);
    stale.clear();
    const done = last.then(() => forgetAll(netfilter, gone));
    for (const address of gone) forgetting.set(address, done);
    // Another attempt may have begun with some of them, for a sandbox that is about to start.
    const settled = () => [...gone].filter(address => forgetting.get(address) === done && forgetting.delete(address));
    last = done.then(
      () => void settled(),
      error => {
        log.error('connections of sandboxes that are gone could not be forgotten', { reason: messageOf(error) });
        wait(settled(), retryMs);
      },
    );
  };

  return {
    leave: ({ address, addressV6 }) => wait(ipv6 ? [address, addressV6] : [address], collectMs),
    async free({ address }) {
      if (stale.has(address)) forget();
      await forgetting.get(address);
    },
    async stop() {
      isStopped = true;
      if (stale.size > 0) forget();
      await last;
      netfilter.close();
    },
  };
}
