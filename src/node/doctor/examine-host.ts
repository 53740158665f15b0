import type { BuildsAllowed } from '../../protocol/build.ts';
import type { HostFinding } from '../../protocol/doctor.ts';
import type { DriverName } from '../../protocol/driver.ts';
import { cgroupProbes } from './cgroups.ts';
import { clientProbe } from './clients.ts';
import { filesystemProbes } from './filesystem.ts';
import { buildsProbe, crunProbe, otherIsolationProbes } from './isolation.ts';
import { kernelProbes } from './kernel.ts';
import { memoryProbe } from './memory.ts';
import { networkProbes } from './network.ts';
import { findingOf } from './probe.ts';
import { type BuiltPrograms, sandboxProbe } from './sandbox.ts';
import { shareProbes } from './shares.ts';

/**
 * Finds out what this host can do for sandboxes by trying it, one thing after another, and leaves nothing behind.
 * `dataDir` need not exist yet; `port` is the one that the platform would listen on, and `servesPort` says that it
 * already does; `criuDir` and `runscDir` are where set-up puts CRIU and gVisor; `onlyNeeded` leaves out what sandboxes
 * can do without. The parts come in the order in which a start needs them; a whole sandbox comes after everything that
 * it needs.
 */
export async function examineHost(
  options: {
    dataDir: string;
    port: number;
    servesPort: boolean;
    criuDir: string;
    runscDir: string;
    requireSecure: boolean;
    builds: BuildsAllowed;
    driver: DriverName;
    diskReserveMiB: number;
    onlyNeeded?: boolean;
  } & BuiltPrograms,
): Promise<HostFinding[]> {
  const { dataDir, runscDir, onlyNeeded = false } = options;
  const probes = [
    ...kernelProbes,
    ...cgroupProbes,
    ...filesystemProbes(dataDir, options.diskReserveMiB),
    ...networkProbes(options),
    crunProbe,
    sandboxProbe(dataDir, options),
    ...otherIsolationProbes(runscDir),
    buildsProbe(options),
    memoryProbe(options),
    clientProbe,
    ...shareProbes(options.requireSecure),
  ];
  const findings: HostFinding[] = [];
  for (const probe of probes) if (probe.needed || !onlyNeeded) findings.push(await findingOf(probe));
  return findings;
}
