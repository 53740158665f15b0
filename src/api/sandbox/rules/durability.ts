import { AtollError } from '../../../base/error.ts';
import type { Durability } from '../../../protocol/durability.ts';
import type { DurablePauses } from '../../blob/rules/pauses.ts';
import type { TeamRecord } from '../../team/record.ts';

/** Tells programs that a sandbox is paused on its machine alone although more was requested. */
export const pauseNotStored = 'sandbox_pause_not_stored';

/** A team's default durability for a sandbox, where that is possible for it. */
export function usualDurability(
  pauses: DurablePauses | null,
  { pauseDurability }: Pick<TeamRecord, 'pauseDurability'>,
  volumeMounts: readonly unknown[],
): Durability {
  return pauses && volumeMounts.length === 0 ? pauseDurability : 'node';
}

/** The sandbox, and the member of the request that asks for durability. */
type Asked = { volumeMounts: readonly unknown[]; member: string };

/** Refuses what no sandbox of this kind can have here. Errors: `precondition`. */
export function requireDurable(
  pauses: DurablePauses | null,
  durability: Durability,
  { volumeMounts, member }: Asked,
): DurablePauses | null {
  if (durability === 'node') return null;
  if (!pauses)
    throw new AtollError(
      'precondition',
      `${member}: cluster needs a store (ATOLL_STORE of the control processes): docs/cluster.md`,
    );
  if (volumeMounts.length > 0)
    throw new AtollError('precondition', `${member}: a sandbox with volumes stays on the machine that has them: node`);
  return pauses;
}

/**
 * Refuses a pause that should outlive its machine where none can, before anything is changed. Errors also:
 * `unavailable` while the store can't be used.
 */
export function requireDurability(
  durablePauses: DurablePauses | null,
  durability: Durability,
  asked: Asked,
): DurablePauses | null {
  const pauses = requireDurable(durablePauses, durability, asked);
  try {
    pauses?.requireUsable();
  } catch (cause) {
    throw new AtollError('unavailable', `${asked.member}: the store can't be used now; nothing was changed`, {
      detail: pauseNotStored,
      cause,
    });
  }
  return pauses;
}
