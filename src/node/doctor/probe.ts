import { AtollError, messageOf } from '../../base/error.ts';
import type { HostFinding } from '../../protocol/doctor.ts';
import { notInstalled } from '../../base/process/command.ts';
import { advice, type Advice } from '../../base/process/set-up.ts';

/** What a probe found out; the rest of a finding is known before it runs. */
export type ProbeResult = { status: HostFinding['status']; detail: string; remedy?: string };

/** One thing that is examined on a host. */
export type Probe = {
  name: string;
  needed: boolean;
  /** Tries the ability and leaves nothing behind. If it throws, the ability is missing. */
  look(): Promise<ProbeResult> | ProbeResult;
  /** What to do when `look` throws. */
  remedy?: string;
};

/** It works. `detail` says how. */
export const ok = (detail: string): ProbeResult => ({ status: 'ok', detail });
/** The platform can do without it, at a price. `remedy` says what to do about it. */
export const limited = (detail: string, remedy?: string): ProbeResult => ({
  status: 'limited',
  detail,
  ...(remedy === undefined ? {} : { remedy }),
});
/** The platform does not run without it. `remedy` says what to do about it. */
export const missing = (detail: string, remedy?: string): ProbeResult => ({
  status: 'missing',
  detail,
  ...(remedy === undefined ? {} : { remedy }),
});

/** A remedy of a few words as a sentence of its own. */
export const sentence = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;

/** The `detail` of a probe's error when there was no place to try anything. */
export const placeUnusable = 'place_unusable';

/** What to do about an unusable place. */
export const placeRemedy = 'Set ATOLL_DATA_DIR to a directory on ext4, xfs or btrfs where root can write.';

/** Runs a probe. This never fails: an error is the finding. */
export async function findingOf(probe: Probe, { install, installs }: Advice = advice): Promise<HostFinding> {
  const { name, needed } = probe;
  try {
    return { name, needed, ...(await probe.look()) };
  } catch (error) {
    // Before set-up a machine lacks what set-up installs; the machine itself lacks nothing. A release installs
    // nothing.
    if (error instanceof AtollError && error.detail === notInstalled)
      return {
        ...{ name, needed },
        ...(installs || !needed ? limited : missing)(`not tried: ${error.message}`, sentence(install)),
      };
    return { name, needed, ...missing(messageOf(error).split('\n')[0] ?? '', remedyFor(error) ?? probe.remedy) };
  }
}

/** Without room, or a place, every probe that writes fails: the probe's own remedy would not help. */
function remedyFor(error: unknown): string | undefined {
  if (!(error instanceof AtollError)) return undefined;
  if (error.code === 'no_space') return 'Make room on that disk, or set ATOLL_DATA_DIR to another one.';
  return error.detail === placeUnusable ? placeRemedy : undefined;
}
