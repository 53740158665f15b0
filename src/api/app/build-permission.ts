import { AtollError } from '../../base/error.ts';
import type { TeamCaller } from './authentication.ts';
import type { App } from './context.ts';

/** Refuses who may not build templates on this installation. Throws `forbidden`. */
export function assertMayBuild(app: Pick<App, 'buildsAllowed'>, { actor }: Pick<TeamCaller, 'actor'>): void {
  if (app.buildsAllowed === 'on') return;
  if (app.buildsAllowed === 'off') throw new AtollError('forbidden', 'This installation builds no templates: its operator has turned builds off (ATOLL_BUILDS=off)');
  if (actor.kind !== 'admin') throw new AtollError('forbidden', 'On this installation the operator alone builds templates (ATOLL_BUILDS=admin): ask for it there');
}
