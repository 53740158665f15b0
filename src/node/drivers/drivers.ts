import { AtollError, assert } from '../../base/error.ts';
import type { DriverName } from '../../protocol/driver.ts';
import type { Driver } from './driver.ts';
import { crunFactory } from './crun/driver.ts';
import type { DriverFactory, DriverHost } from './factory.ts';
import { gvisorFactory } from './gvisor/driver.ts';

/** Every driver there is: a new one is a folder, its name in the protocol, and a line here. */
const factories: readonly [DriverFactory, ...DriverFactory[]] = [crunFactory, gvisorFactory];

/** How people write a driver's name, and which kernel serves its sandboxes. For the doctor. */
export function describeDriver(name: DriverName): Pick<DriverFactory, 'title' | 'kernel'> {
  const found = factories.find(factory => factory.name === name);
  assert(found, `there is no driver ${name}`);
  return found;
}

/** What isolates the sandboxes of a node. */
export type Drivers = {
  /** Isolates sandboxes whose template asks for no driver. */
  default: Driver;
  /** The driver whose sandboxes CRIU checkpoints; undefined: there is none. */
  withCheckpoints: Driver | undefined;
  /** The drivers that can start sandboxes here. */
  names: DriverName[];
  /**
   * The driver of that name, or the default one, for a start. Errors: `precondition` if it can't start sandboxes here.
   */
  toStart(name: DriverName | undefined): Driver;
  /** The driver that has started a sandbox, whether or not it can still start others. */
  of(name: DriverName): Driver;
  /** Every driver that still keeps something of the slot, for a sandbox without any record. */
  keepersOf(slotNumber: number): Driver[];
  /** Slots of which a driver still keeps something. */
  leftovers(): Set<number>;
  /** Removes what the drivers themselves keep on the host, when no slot is in use. */
  retire(): Promise<void>;
};

/** Makes the drivers of a node. `defaultName` is the operator's choice; without it, the first driver is the default. */
export function createDrivers(host: DriverHost, defaultName: DriverName | undefined): Drivers {
  const drivers = new Map(
    factories.map(({ name, title, create, whyUnavailable }) => [
      name,
      { title, driver: create(host), reason: whyUnavailable(host) },
    ]),
  );
  const all = [...drivers.values()].map(({ driver }) => driver);
  const known = (name: DriverName) => {
    const found = drivers.get(name);
    assert(found, `there is no driver ${name}`);
    return found;
  };
  const standard = known(defaultName ?? factories[0].name).driver;
  return {
    default: standard,
    withCheckpoints: all.find(({ capabilities }) => capabilities.withoutCheckpoints === null),
    names: [...drivers].flatMap(([name, { reason }]) => (reason === undefined ? [name] : [])),
    toStart(name = standard.name) {
      const { title, driver, reason } = known(name);
      if (reason === undefined) return driver;
      throw new AtollError('precondition', `${title} can't start sandboxes on this node: ${reason}`, {
        detail: 'driver_unavailable',
      });
    },
    of: name => known(name).driver,
    keepersOf: slotNumber => all.filter(driver => driver.leftovers().has(slotNumber)),
    leftovers: () => new Set(all.flatMap(driver => [...driver.leftovers()])),
    async retire() {
      // The last comes first: the first driver's group contains all others.
      for (const driver of all.toReversed()) await driver.retire();
    },
  };
}
