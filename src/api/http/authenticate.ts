import { authenticateTeam } from '../app/authentication.ts';
import type { Credentials, TeamCaller } from '../app/authentication.ts';
import type { App } from '../app/context.ts';
import type { Route } from './route.ts';

/** The caller of a route, or null where none is asked for. Throws `unauthenticated` or `forbidden`. */
export async function authenticate(app: App, route: Route, headers: Headers): Promise<TeamCaller | null> {
  if (route.auth === 'none') return null;
  const readsOrRemoves = route.method === 'GET' || route.method === 'DELETE';
  return authenticateTeam(app, credentialsOf(headers), readsOrRemoves);
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
