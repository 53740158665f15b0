import { AtollError, messageOf } from '../../base/error.ts';
import type { HostFinding } from '../../protocol/doctor.ts';
import { notInstalled } from './command.ts';

/** What a probe saw; the rest of a finding is known before it runs. */
export type Sight = { status: HostFinding['status']; detail: string; remedy?: string };

export type Probe = {
  name: string;
  needed: boolean;
  /** Tries the ability out and leaves nothing behind. Throwing means that it is missing. */
  look(): Promise<Sight> | Sight;
  /** What to do when `look` throws. */
  remedy?: string;
};

export const ok = (detail: string): Sight => ({ status: 'ok', detail });
export const limited = (detail: string, remedy?: string): Sight => ({ status: 'limited', detail, ...(remedy === undefined ? {} : { remedy }) });
export const missing = (detail: string, remedy?: string): Sight => ({ status: 'missing', detail, ...(remedy === undefined ? {} : { remedy }) });

/** Runs a probe. It never fails: what it throws is what it found. */
export async function findingOf(probe: Probe): Promise<HostFinding> {
  const { name, needed } = probe;
  try {
    return { name, needed, ...(await probe.look()) };
  } catch (error) {
    // Before set-up a machine lacks what set-up installs: that is no lack of the machine.
    if (error instanceof AtollError && error.detail === notInstalled) return { name, needed, ...limited(`not tried: ${error.message}`, 'Run `npm run up`: it installs what is missing.') };
    return { name, needed, ...missing(messageOf(error).split('\n')[0] ?? '', probe.remedy) };
  }
}
