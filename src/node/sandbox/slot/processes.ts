import type { Driver } from '../../drivers/driver.ts';
import {
  gatewayAddress,
  gatewayAddressV6,
  innerAddress,
  innerAddressV6,
  innerMac,
  outerMac,
  type Slot,
} from '../../layout.ts';
import type { Helper } from '../../native/helper.ts';
import type { NetworkNamespace } from '../../native/netns.ts';
import type { Egress } from '../../network/egress/egress.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import type { Cleanups } from './cleanups.ts';
import type { SlotHost } from './slot-host.ts';

/** The processes of a sandbox in its slot, from their start to their release. */
export type Processes = {
  slot: Slot;
  /** The driver that has started them: only it knows how to stop and end them. */
  driver: Driver;
  /** The first of them, in the host's numbers. */
  pid: number;
  /** The way into their network. Closed when they are ended. */
  namespace: NetworkNamespace;
  /** Settles when all of them have ended. */
  ended: Promise<void>;
};

/** Looks after processes from right after their start to their end. */
export type ProcessControl = {
  /** Watches processes that were started or found. Throws if they have ended. */
  watch(driver: Driver, slot: Slot, pid: number): Promise<Processes>;
  /** Connects a sandbox with the host. Nothing passes before it has a policy. */
  linkUp(driver: Driver, slot: Slot, pid: number): Promise<void>;
  /** Ends the processes and their way out. What the slot holds of the host stays. A failed end can be repeated. */
  end(processes: Processes): Promise<void>;
  /**
   * Ends the processes and frees their slot, once for each. If that fails, it repeats until it succeeds, and nobody
   * else has to repeat it.
   */
  release(processes: Processes): Promise<void>;
};

/**
 * The control over the processes of a node. `mtu`: the largest packet on their links. `ipv6`: whether those have IPv6.
 */
export function createProcessControl(options: {
  helper: Helper;
  egress: Egress;
  volumes: Volumes;
  slotHost: Pick<SlotHost, 'release'>;
  cleanups: Pick<Cleanups, 'begin'>;
  mtu: number;
  ipv6: boolean;
}): ProcessControl {
  const { helper, egress, volumes, slotHost, cleanups, mtu, ipv6 } = options;
  const control: ProcessControl = {
    async watch(driver, slot, pid) {
      // The first process ends last: with it, every other has ended.
      const ended = helper.exited(slot.name);
      await helper.call('watch', { tag: slot.name, pid });
      return { slot, driver, pid, ended, namespace: driver.openNetwork(slot, pid) };
    },
    async linkUp(driver, slot, pid) {
      const withV6 = ipv6 && driver.capabilities.hasIpv6;
      await helper.call('link-up', {
        pid,
        name: slot.interfaceName,
        slotAddress: slot.address,
        innerAddress,
        gateway: gatewayAddress,
        outerMac,
        innerMac,
        mtu,
        ...(withV6 && {
          ipv6: { slotAddress: slot.addressV6, innerAddress: innerAddressV6, gateway: gatewayAddressV6 },
        }),
      });
      await egress.guard(slot);
    },
    async end({ slot, driver, namespace, ended }) {
      driver.hasten(slot);
      await helper.call('kill', { tag: slot.name }).catch(() => {}); // it has ended already
      await ended;
      await driver.endProcesses(slot);
      egress.countLast(slot);
      await egress.remove(slot);
      volumes.release(slot);
      // This comes last: after it the number belongs to another file, and a failed end is repeated.
      namespace.close();
    },
    async release(processes) {
      const { slot, driver } = processes;
      let haveEnded = false;
      const free = async () => {
        // Closing uses the number of a descriptor, which belongs to another file after that.
        if (!haveEnded) await control.end(processes);
        haveEnded = true;
        await slotHost.release(slot, [driver]);
      };
      await free().catch((error: unknown) => {
        cleanups.begin(slot.name, free);
        throw error;
      });
    },
  };
  return control;
}
