import { keepOnly } from '../../base/keep-only.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { outliving } from '../../base/telemetry/once-in-a-row.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import { usedByAllUs } from '../cgroup/used-by-all.ts';
import { isFreeLoop, loopWrites, type LoopWrites } from './loop-writes.ts';
import type { MountedDisk } from './mounted-disks.ts';

/** A disk may write this many bytes as fast as the host takes them; they are credited again over time. */
export const burstBytes = 2 ** 30;
/** Once they are used up a pace applies, until this many are credited again. */
const liftedFromBytes = burstBytes / 2;
/** Time between two looks. */
const intervalMs = 500;
/** Sandboxes that have used less processor time, in microseconds, have not written much. */
const unseenUs = 20_000;

type PaceOptions = {
  cgroups: Pick<Cgroups, 'limitWrites' | 'limitedDevices' | 'cpuUs' | 'forget'>;
  /** The group of all sandboxes. */
  group: string;
  /** The writable disks that are mounted now. */
  disks(): MountedDisk[];
  /** Whether somebody waits until all of a disk is written out, as a pause does. */
  isAwaited(point: string): boolean;
  /** How fast one disk may write continuously. */
  bytesPerSecond: number;
  log: Log;
  /** The kernel's counts. */
  writes?: () => LoopWrites[];
};

type Pace = { device: string; written: number; credit: number; point: string | undefined; isLimited: boolean };

/**
 * Limits the pace of disks that are written to continuously. The kernel copies and writes out a sandbox's writes in
 * threads of its own, which no share of the processors bounds: one disk would take from all others.
 */
export function startPacing(options: PaceOptions): { stop(): void } {
  const { cgroups, group, bytesPerSecond, log, writes = loopWrites } = options;
  const paces = new Map<string, Pace>();
  let last = { usedUs: -unseenUs, atMs: performance.now() };

  const limit = (pace: Pace, isLimited: boolean) => {
    pace.isLimited = isLimited;
    cgroups.limitWrites(group, pace.device, isLimited ? bytesPerSecond : undefined);
  };
  const judge = (name: string, pace: Pace, point: string | undefined) => {
    // Another disk has the device now, or none.
    if (point === undefined || point !== (pace.point ?? point)) paces.delete(name);
    const isFree = !paces.has(name) || pace.credit >= liftedFromBytes || options.isAwaited(point ?? '');
    pace.point = point;
    // Set again at each look: another installation on this host lifts, at its start, limits that it does not know.
    if (!isFree && (pace.credit === 0 || pace.isLimited)) limit(pace, true);
    else if (isFree && pace.isLimited) limit(pace, false);
  };
  const look = () => {
    const now = { usedUs: usedByAllUs(cgroups, group), atMs: performance.now() };
    const isAnyLimited = [...paces.values()].some(pace => pace.isLimited);
    if (!isAnyLimited && now.usedUs - last.usedUs < unseenUs) return;
    const earned = ((now.atMs - last.atMs) / 1000) * bytesPerSecond;
    last = now;
    const all = writes();
    for (const written of all) count(paces, written, earned);
    keepOnly(
      paces,
      all.map(({ name }) => name),
    );
    const low = [...paces].filter(([, { credit, isLimited }]) => isLimited || credit < liftedFromBytes);
    if (low.length === 0) return;
    const points = new Map(options.disks().map(({ device, point }) => [device, point]));
    for (const [name, pace] of low) judge(name, pace, points.get(name));
  };

  const outlived = (work: () => void) =>
    outliving(work, error => log.warn('the pace of disks could not be looked at or set', { error }));
  outlived(() => liftLeft(options, writes()))();
  const timer = setInterval(outlived(look), intervalMs);
  return {
    stop() {
      clearInterval(timer);
      // Nobody else would lift it.
      for (const pace of paces.values()) if (pace.isLimited) outlived(() => limit(pace, false))();
    },
  };
}

/**
 * Credits what was earned since the last look, and subtracts what was written; a new device begins with full credit.
 */
function count(paces: Map<string, Pace>, { name, device, bytes }: LoopWrites, earned: number): void {
  const pace = paces.get(name);
  if (!pace)
    return void paces.set(name, { device, written: bytes, credit: burstBytes, point: undefined, isLimited: false });
  const credit = Math.min(burstBytes, pace.credit + earned) - (bytes - pace.written);
  pace.credit = Math.max(0, Math.floor(credit));
  pace.written = bytes;
}

/** An earlier process that was killed has left its limits: on disks that are mounted, and on devices without a disk. */
function liftLeft({ cgroups, group, disks }: PaceOptions, all: LoopWrites[]): void {
  const limited = new Set(cgroups.limitedDevices(group));
  if (limited.size === 0) return;
  const mounted = new Set(disks().map(({ device }) => device));
  for (const { name, device } of all)
    if (limited.has(device) && (mounted.has(name) || isFreeLoop(device))) cgroups.limitWrites(group, device, undefined);
}
