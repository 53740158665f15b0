import type { DriverName } from '../../protocol/driver.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import type { Layout } from '../layout.ts';
import type { Helper } from '../native/helper.ts';
import type { Driver } from './driver.ts';

/** What drivers are made with. */
export type DriverHost = {
  helper: Helper;
  /** The helper's executable: started with other arguments, it is small programs for single tasks. */
  helperBinary: string;
  cgroups: Cgroups;
  layout: Layout;
  /** What programs in a sandbox see as the machine's name. */
  hostname: string;
  /** The largest packet on the link to a sandbox. */
  mtu: number;
  /** Where set-up has put gVisor's runsc; undefined: nowhere. */
  runscDir: string | undefined;
};

/** Makes a driver, and says whether it can start sandboxes here. */
export type DriverFactory = {
  name: DriverName;
  /** As people write it. */
  title: string;
  /** Whose kernel serves the system calls of sandboxes: the host's, or one of their own. */
  kernel: 'host' | 'own';
  /** The driver: it looks after what it has started earlier, also where it can start nothing now. */
  create(host: DriverHost): Driver;
  /** Why the driver can't start sandboxes on this node; undefined: it can. */
  whyUnavailable(host: DriverHost): string | undefined;
};
