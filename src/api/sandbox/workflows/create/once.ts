import { AtollError } from '../../../../base/error.ts';
import type { TeamRecord } from '../../../team/record.ts';
import { requestUnderWay, isUnderWay, requestMismatch } from '../../rules/repeated.ts';
import { findKey } from '../../store/idempotency.ts';
import type { Repeatable } from '../../store/idempotency.ts';
import type { CreatedSandbox } from '../../record.ts';
import { createSandbox } from './create.ts';
import type { CreateDeps, NewSandboxRequest } from './create.ts';

/** How long a repeated create waits for the one under way, milliseconds: as long as that may take. */
const waitMs = 50_000;
const pollMs = 100;

/**
 * Creates a sandbox, unless a request with the same key has done so: then answers what that one was answered, even if
 * the sandbox is gone by now. Waits for one that is under way. The key is written together with the sandbox's row:
 * after a crash, both exist or neither. Errors: those of `createSandbox`; `conflict` for a key of another request, and
 * for a create that does not end.
 */
export async function createSandboxOnce(
  deps: CreateDeps,
  team: TeamRecord,
  asked: NewSandboxRequest,
  repeatable: Repeatable,
  clientSignal: AbortSignal,
): Promise<CreatedSandbox> {
  for (const deadline = performance.now() + waitMs; performance.now() < deadline; await Bun.sleep(pollMs)) {
    if (clientSignal.aborted) throw new AtollError('canceled', 'The request was given up by the client');
    const known = await findKey(deps.db, team.teamId, repeatable.key);
    if (known && known.requestDigest !== repeatable.requestDigest) throw requestMismatch();
    if (known?.outcome === 'under_way') continue;
    if (known) return known.outcome.answer;
    try {
      return await createSandbox(deps, team, asked, clientSignal, repeatable);
    } catch (error) {
      // Another request was faster between the two checks.
      if (!isUnderWay(error)) throw error;
    }
  }
  throw requestUnderWay();
}
