import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { DriverName } from '../../protocol/node.ts';
import type { Layout, Slot } from '../layout.ts';
import type { Driver } from './driver.ts';

/** What isolates the sandboxes of a node. */
export type Drivers = {
  /** Of sandboxes whose template asks for none. */
  defaultName: DriverName;
  /** Those that can start sandboxes here. */
  names: DriverName[];
  /** The driver of that name, or the default one. Fails with `precondition` where it can't start sandboxes here. */
  of(name: DriverName | undefined): Driver;
  /** For all that is done to a sandbox that was started: passes it to the driver whose slot it is. */
  bySlot: Omit<Driver, 'name' | 'adoptsRoot' | 'startBlank'>;
};

/** `gvisorReason`: why gVisor can't start sandboxes, where it can't. What it has started earlier is looked after all the same. */
export function createDrivers(options: { layout: Layout; crun: Driver; gvisor: Driver; gvisorReason: string | undefined; defaultName: DriverName }): Drivers {
  const { layout, crun, gvisor, gvisorReason, defaultName } = options;
  const names: DriverName[] = gvisorReason === undefined ? ['crun', 'gvisor'] : ['crun'];
  const at = (slot: Slot) => (existsSync(join(layout.gvisorState, slot.name)) ? gvisor : crun);
  return {
    defaultName,
    names,
    of(name = defaultName) {
      if (!names.includes(name)) throw new AtollError('precondition', `gVisor can't start sandboxes on this node: ${gvisorReason}`, { detail: 'driver_unavailable' });
      return name === 'gvisor' ? gvisor : crun;
    },
    bySlot: {
      giveRoot: (slot, pid, root) => at(slot).giveRoot(slot, pid, root),
      begin: async (slot, pid) => at(slot).begin?.(slot, pid),
      mountVolume: (slot, pid, volume) => at(slot).mountVolume(slot, pid, volume),
      openNetwork: (slot, pid) => at(slot).openNetwork(slot, pid),
      hasten: slot => at(slot).hasten(slot),
      setLimits: (slot, resources) => at(slot).setLimits(slot, resources),
      freeze: slot => at(slot).freeze(slot),
      thaw: slot => at(slot).thaw(slot),
      killFrozen: slot => at(slot).killFrozen(slot),
      cgroupPath: slot => at(slot).cgroupPath(slot),
      hold: slot => at(slot).hold(slot),
      isFrozen: slot => at(slot).isFrozen(slot),
      processes: slot => at(slot).processes(slot),
      writeBootId: (slot, bootId) => at(slot).writeBootId(slot, bootId),
      endProcesses: slot => at(slot).endProcesses(slot),
      remove: slot => at(slot).remove(slot),
      leftovers: () => new Set([...crun.leftovers(), ...gvisor.leftovers()]),
      memoryUsed: slot => at(slot).memoryUsed(slot),
      outOfMemoryKills: slot => at(slot).outOfMemoryKills(slot),
      async retire() {
        await gvisor.retire();
        await crun.retire();
      },
    },
  };
}
