import { authenticate } from '../app/authentication.ts';
import type { AdminCaller, Caller, Credentials, ScraperCaller, TeamCaller, UserCaller, VolumeCaller, Way } from '../app/authentication.ts';
import type { App } from '../app/context.ts';
import type { Route } from './route.ts';

/** Who may call an operation, and by which ways they prove it. */
export const waysOf = {
  none: [],
  /** A team: by its key, by one of its members, by an operator who acts for it. */
  team: ['apiKey', 'userTeam', 'adminTeam'],
  /** The same, or a user for his default team. */
  teamOrUser: ['apiKey', 'userTeam', 'adminTeam', 'userDefaultTeam'],
  /** A person of the team: a key must not make keys. */
  member: ['userTeam'],
  memberOrAdmin: ['userTeam', 'adminTeam'],
  user: ['user'],
  admin: ['admin'],
  /** Whoever has the token of one volume. */
  volume: ['volumeToken'],
  /** An operator, or who has the token of metrics, in the one header that every scraper can send. */
  scraper: ['admin', 'metricsToken'],
} as const satisfies Record<string, readonly Way[]>;

export type Auth = keyof typeof waysOf;

export type CallerOf = {
  none: null;
  team: TeamCaller;
  teamOrUser: TeamCaller;
  member: TeamCaller;
  memberOrAdmin: TeamCaller;
  user: UserCaller;
  admin: AdminCaller;
  volume: VolumeCaller;
  scraper: AdminCaller | ScraperCaller;
};

/** The caller of a route, or null where none is asked for. Throws `unauthenticated` or `forbidden`. */
export async function authenticateRequest(app: App, route: Route, headers: Headers): Promise<Caller | null> {
  if (route.auth === 'none') return null;
  const readsOrRemoves = route.method === 'GET' || route.method === 'DELETE';
  return authenticate(app, credentialsOf(headers), waysOf[route.auth], readsOrRemoves);
}

function credentialsOf(headers: Headers): Credentials {
  const bearer = /^bearer\s+(\S+)\s*$/i.exec(headers.get('authorization') ?? '');
  return {
    apiKey: headers.get('x-api-key'),
    bearer: bearer?.[1] ?? null,
    adminToken: headers.get('x-admin-token'),
    teamId: headers.get('x-team-id'),
  };
}
