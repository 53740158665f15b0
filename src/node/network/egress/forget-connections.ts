import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Slot } from '../../layout.ts';
import { forgetFlows } from '../../native/conntrack.ts';
import { families, openNetlink } from '../../native/netlink.ts';

/** Many at a time, and not more often than this: going through the kernel's connections takes milliseconds. */
const collectMs = 250;

/**
 * Makes the kernel forget the connections of sandboxes that are gone: what still comes in for them must not reach a
 * slot's next one.
 */
export type ForgottenConnections = {
  /** The sandbox of this slot is gone. Its connections are forgotten soon, together with those of others. */
  leave(slot: Addresses): void;
  /** Resolves when the slot has no connections of a sandbox before. Fails where they could not be forgotten. */
  free(slot: Addresses): Promise<void>;
  stop(): Promise<void>;
};

/** What stands for a sandbox outside of it. */
type Addresses = Pick<Slot, 'address' | 'addressV6'>;

/**
 * Takes a netlink socket of its own, as going through the kernel's connections takes its time. `ipv6`: sandboxes have
 * it.
 */
export function createForgottenConnections(log: Log, ipv6: boolean): ForgottenConnections {
  const netfilter = openNetlink(families.netfilter);
  /** Addresses for which the kernel may still keep connections. */
  const stale = new Set<string>();
  /** Those that are being forgotten, and the end of it. */
  const forgetting = new Map<string, Promise<void>>();
  let last = Promise.resolve();
  let timer: ReturnType<typeof setTimeout> | undefined;

  const forget = () => {
    clearTimeout(timer);
    const gone = new Set(stale);
    stale.clear();
    const done = last.then(() => forgetFlows(netfilter, gone));
    last = done.catch(error =>
      log.error('connections of sandboxes that are gone could not be forgotten', { reason: messageOf(error) }),
    );
    for (const address of gone) forgetting.set(address, done);
    void last.then(() => {
      for (const address of gone) if (forgetting.get(address) === done) forgetting.delete(address);
    });
  };

  return {
    leave({ address, addressV6 }) {
      if (stale.size === 0) timer = setTimeout(forget, collectMs);
      stale.add(address);
      if (ipv6) stale.add(addressV6);
    },
    async free({ address }) {
      if (stale.has(address)) forget();
      await forgetting.get(address);
    },
    async stop() {
      clearTimeout(timer);
      await last;
      netfilter.close();
    },
  };
}
