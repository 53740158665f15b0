import { AtollError } from '../../../base/error.ts';
import type { TeamCaller } from '../../credential/caller.ts';
import type { BuildsAllowed } from '../../../protocol/build.ts';

/** Refuses callers who may not build templates on this installation. Throws `forbidden`. */
export function assertMayBuild(buildsAllowed: BuildsAllowed, { actor }: Pick<TeamCaller, 'actor'>): void {
  if (buildsAllowed === 'on') return;
  if (buildsAllowed === 'off')
    throw new AtollError(
      'forbidden',
      'This installation builds no templates: its operator has turned builds off (ATOLL_BUILDS=off)',
    );
  if (actor.kind !== 'admin')
    throw new AtollError(
      'forbidden',
      'On this installation the operator alone builds templates (ATOLL_BUILDS=admin): ask for it there',
    );
}
