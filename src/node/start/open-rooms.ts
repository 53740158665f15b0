import { mkdirSync } from 'node:fs';
import { cpus, setPriority } from 'node:os';
import { createFairSemaphore } from '../../base/concurrency/fair-semaphore.ts';
import { createSemaphore } from '../../base/concurrency/semaphore.ts';
import { SharedWhileUsed } from '../../base/concurrency/shared-while-used.ts';
import { messageOf } from '../../base/error.ts';
import { platformNiceness } from '../../base/process/niceness.ts';
import { keepAgent } from '../agent-client/copy.ts';
import { createBuilder } from '../builder/builder.ts';
import { detectCgroups } from '../cgroup/cgroup.ts';
import { createDisks } from '../disks/disks.ts';
import { createDrivers, type Drivers } from '../drivers/drivers.ts';
import type { DriverHost } from '../drivers/factory.ts';
import { raiseHostLimits } from '../host-limits.ts';
import { createLayers } from '../layers/store.ts';
import { cgroupRootOf, type Layout } from '../layout.ts';
import { openSandboxLogs } from '../logs/sandbox-logs.ts';
import { startHelper } from '../native/helper.ts';
import { createEgress, resolversInside } from '../network/egress/egress.ts';
import { withoutIpv6 } from '../network/ipv6.ts';
import { outgoingMtu } from '../network/rules/outgoing-mtu.ts';
import type { NodeOptions } from './options.ts';
import { createIncidents } from '../sandbox/incidents.ts';
import { imagesByPoint } from '../sandbox/image-at.ts';
import { keepFilesOfEnded } from '../sandbox/keep/keep-sandbox.ts';
import { createKeptFiles } from '../sandbox/keep/kept.ts';
import { recordKey } from '../sandbox/records/record-key.ts';
import { createRecords } from '../sandbox/records/record-store.ts';
import { openWithdrawn } from '../sandbox/records/withdrawn.ts';
import { createCleanups } from '../sandbox/slot/cleanups.ts';
import { createProcessControl } from '../sandbox/slot/processes.ts';
import { createSlotHost } from '../sandbox/slot/slot-host.ts';
import { createSlots } from '../sandbox/slot/slots.ts';
import { Sandboxes } from '../sandbox/state/sandboxes.ts';
import { reportFailedDisk, reportSpace } from '../sandbox/report-space.ts';
import { whyMemoryLost } from '../snapshot/later-memory.ts';
import type { OpenSnapshot } from '../snapshot/restore.ts';
import { watchSpace } from '../space/space.ts';
import { createVolumes } from '../volumes/volumes.ts';

/** The machine's name that programs in a sandbox see. Constant: forks and resumed sandboxes need no new one. */
const hostname = 'sandbox';

/**
 * How many sandboxes start at a time, for each core: while one waits for the kernel, another computes. In addition
 * there are as many places as for one core, one each for teams that start no other: some memory takes minutes.
 */
const startsPerCore = 2;

/** How many programs remove files of sandboxes at a time. */
const removalsAtOnce = 2;

const defaultFrozenMs = 20_000;
const defaultLogBytesMax = 1 << 30;
const defaultDiskReserveBytes = 2 * 1024 ** 3;

/**
 * Opens the rooms of a node, each with the few values that it uses. `undo` ends whatever runs for them. Nothing of a
 * sandbox is touched yet.
 */
export async function openRooms(options: NodeOptions, layout: Layout, undo: AsyncDisposableStack) {
  const { log, helperBinary } = options;
  for (const dir of [layout.data, layout.mounts, layout.agentMount]) mkdirSync(dir, { recursive: true });
  const helper = await startHelper({ binary: helperBinary, runDir: layout.run, onLost: options.onHelperLost });
  undo.defer(() => helper.stop());
  const agentDir = await keepAgent(options.agentDir, layout.agents);
  await helper.call('show', { directory: agentDir, at: layout.agentMount });
  setPriority(platformNiceness);
  for (const { setting, present, least } of raiseHostLimits())
    log.warn('a limit of the host is lower than its sandboxes need', { setting, present, least });
  const noIpv6 = withoutIpv6();
  log.info('IPv6 of sandboxes', noIpv6 === undefined ? { has: true } : { has: false, reason: noIpv6 });
  const host = {
    layout,
    log,
    helper,
    helperBinary,
    cgroups: detectCgroups(),
    mtu: outgoingMtu(),
    ipv6: noIpv6 === undefined,
  };
  const builder = createBuilder({ ...host, builderDir: options.builderDir, installation: layout.installation });
  undo.defer(() => builder.stop());
  const logs = openSandboxLogs({ directory: layout.logs, bytesMax: options.logs?.bytesMax ?? defaultLogBytesMax, log });
  const sandboxes = new Sandboxes();
  const incidents = createIncidents();
  const records = createRecords(layout.sandboxes, recordKey(layout.run));
  const space = watchSpace({
    dataDir: options.dataDir,
    mounts: layout.mounts,
    mountsPid: helper.mountsPid,
    reserveBytes: options.diskReserveBytes ?? defaultDiskReserveBytes,
    images: () => imagesByPoint(sandboxes, records, layout),
    log,
    onHeld: held => reportSpace({ sandboxes, logs }, held),
    onFailed: disk => reportFailedDisk({ sandboxes, layout, logs, incidents, log }, disk),
  });
  undo.defer(() => space.stop());
  const egress = createEgress({
    layout,
    log,
    onDenied: logs.denied,
    onEnd: logs.traffic,
    nameservers: options.nameservers,
    ipv6: host.ipv6,
    settings: options.egress ?? {},
  });
  undo.defer(() => egress.stop());
  return {
    ...host,
    agentDir,
    agentsShown: new Set<string>(),
    builder,
    logs,
    logOutput: options.logs?.output ?? true,
    sandboxes,
    records,
    withdrawn: openWithdrawn(layout.data),
    space,
    egress,
    ...slotRooms({ ...host, egress, records, nameservers: options.nameservers }),
    drivers: openDrivers({ ...host, hostname, runscDir: options.runscDir }, options.driver),
    layers: createLayers({ helper, dir: layout.layers, mounts: layout.mounts }),
    incidents,
    openings: new SharedWhileUsed<string, OpenSnapshot>(),
    starts: createFairSemaphore(startsPerCore * cpus().length, startsPerCore),
    removals: createSemaphore(removalsAtOnce),
    frozenMs: options.frozenMs ?? defaultFrozenMs,
  };
}

/** The drivers, and the device filter for what they start. */
function openDrivers(host: DriverHost & Pick<NodeOptions, 'log'>, usual: NodeOptions['driver']): Drivers {
  const drivers = createDrivers(host, usual);
  try {
    host.cgroups.filterDevices(cgroupRootOf(host.layout));
  } catch (error) {
    // A sandbox's devices depend on its /dev, and it can make none: the filter is a second wall.
    host.log.warn('the kernel filters no devices of sandboxes', { error: messageOf(error) });
  }
  return drivers;
}

/** What sandboxes hold of the host. */
function slotRooms({
  nameservers,
  ...rooms
}: Pick<Parameters<typeof createSlotHost>[0], 'layout' | 'helper'> &
  Pick<Parameters<typeof createProcessControl>[0], 'egress' | 'mtu' | 'ipv6'> &
  Pick<Parameters<typeof createKeptFiles>[0], 'helperBinary' | 'records'> &
  Pick<NodeOptions, 'log' | 'nameservers'>) {
  const { layout, helper, log } = rooms;
  const disks = createDisks({ helper, dir: layout.disks, files: systemFiles(resolversInside(nameservers)) });
  const volumes = createVolumes({ helper, dir: layout.volumes, mounts: layout.mounts, log });
  const slots = createSlots(layout.installation);
  const cleanups = createCleanups(log);
  const slotHost = createSlotHost({ layout, helper, disks, volumes, slots, cleanups, log });
  return {
    disks,
    volumes,
    slots,
    cleanups,
    slotHost,
    whyMemoryLost: whyMemoryLost.bind(null, { ...rooms, runDir: layout.run }),
    keepFilesOfEnded: keepFilesOfEnded.bind(null, { ...rooms, volumes }),
    processControl: createProcessControl({ ...rooms, volumes, slotHost, cleanups }),
    kept: createKeptFiles({ ...rooms, disks }),
  };
}

/** The files that every sandbox has in addition to its template: how names are resolved. */
function systemFiles(nameservers: string[]): Record<string, string> {
  return {
    'etc/hostname': `${hostname}\n`,
    'etc/hosts': `127.0.0.1 localhost ${hostname}\n::1 localhost ip6-localhost ip6-loopback\n`,
    'etc/resolv.conf': nameservers.map(address => `nameserver ${address}\n`).join(''),
  };
}
