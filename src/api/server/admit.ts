import { AtollError } from '../../base/error.ts';
import { roles } from '../../protocol/api/member.ts';
import type { Clock } from '../../base/clock.ts';
import type { Caller } from '../credential/caller.ts';
import type { Route } from '../http/route.ts';
import { isProven } from '../session/rules/lifetime.ts';

/** `detail` of the error that says that the session must prove again whose it is, for a page that can ask. */
const proofNeeded = 'proof_needed';

/**
 * Refuses a known caller that lacks something: the role in the team, or a session that proved recently whose it is.
 * Throws `forbidden`.
 */
export function admit({ clock }: { clock: Clock }, route: Pick<Route, 'role' | 'proof'>, caller: Caller): void {
  if (caller.kind === 'team' && roles.indexOf(caller.role) < roles.indexOf(route.role)) {
    const message = `This takes the role "${route.role}" in the team; yours is "${caller.role}"`;
    throw new AtollError('forbidden', message);
  }
  if (!route.proof || !('provenAtUs' in caller) || caller.provenAtUs === null) return;
  if (!isProven(caller.provenAtUs, clock())) {
    const message = 'This takes a session that proved within the last ten minutes whose it is: see PUT /session/proof';
    throw new AtollError('forbidden', message, { detail: proofNeeded });
  }
}
