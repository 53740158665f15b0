import type { DriverName } from '../../protocol/driver.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import type { Layout } from '../layout.ts';
import type { Helper } from '../native/helper.ts';
import type { Driver } from './driver.ts';

/** What drivers need from their node. */
export type DriverHost = {
  helper: Helper;
  /** The helper's executable: with other arguments, it is also small programs for single tasks. */
  helperBinary: string;
  cgroups: Cgroups;
  layout: Layout;
  /** The name of the machine that programs in a sandbox see. */
  hostname: string;
  /** The largest packet on the link to a sandbox. */
  mtu: number;
  /** Where set-up has put gVisor's runsc; undefined: it has not. */
  runscDir: string | undefined;
};

/** Makes a driver, and says whether it can start sandboxes here. */
export type DriverFactory = {
  name: DriverName;
  /** As people write it. */
  title: string;
  /** Which kernel serves the system calls of sandboxes: the host's, or one of their own. */
  kernel: 'host' | 'own';
  /** Makes the driver. It looks after sandboxes that it started earlier, even if it can start none now. */
  create(host: DriverHost): Driver;
  /** Why the driver can't start sandboxes on this node; undefined: it can. */
  whyUnavailable(host: DriverHost): string | undefined;
};
