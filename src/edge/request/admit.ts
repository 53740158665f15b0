import { secretsEqual } from '../../base/crypto/secret.ts';
import { agentPort } from '../../protocol/agent.ts';
import { type Answer, type SandboxPort, sandboxAnswer } from '../answer/answer.ts';
import type { Route } from '../../protocol/directory.ts';
import type { Fields } from '../../http1/fields.ts';

/** Parts of a request that may open a sandbox. */
export type Credentials = { readonly traffic: string | undefined; readonly access: string | undefined };

/** The credentials among the header fields of a request. */
export function credentialsOf(fields: Fields): Credentials {
  return {
    traffic: fields.text('e2b-traffic-access-token') ?? fields.text('svc-traffic-access-token'),
    access: fields.text('x-access-token'),
  };
}

/** Why this request may not use the port; undefined if it may. The agent checks its own token itself. */
export function refusalOfTraffic(route: Route, to: SandboxPort, credentials: Credentials): Answer | undefined {
  const { trafficAccessToken } = route.ingress;
  if (trafficAccessToken === null || to.port === agentPort) return undefined;
  if (matches(credentials.traffic, trafficAccessToken)) return undefined;
  const state = credentials.traffic === undefined ? 'missing' : 'wrong';
  return sandboxAnswer(
    403,
    `The header e2b-traffic-access-token is ${state}: this sandbox's traffic is not public`,
    to,
  );
}

/**
 * Why this request may not have a raw connection to a port; undefined if it may. Like commands, that takes the agent's
 * token.
 */
export function refusalOfTunnel(route: Route, to: SandboxPort, credentials: Credentials): Answer | undefined {
  const { accessToken } = route.ingress;
  if (accessToken === null || matches(credentials.access, accessToken)) return undefined;
  const state = credentials.access === undefined ? 'missing' : 'wrong';
  return sandboxAnswer(403, `The header X-Access-Token is ${state}: it is needed for connections to a port`, to);
}

/** Why this request may not wake the sandbox; undefined if it may. */
export function refusalOfWake(route: Route, to: SandboxPort, credentials: Credentials): Answer | undefined {
  if (to.port !== agentPort) return refusalOfTraffic(route, to, credentials);
  const { accessToken } = route.ingress;
  if (accessToken === null || matches(credentials.access, accessToken)) return undefined;
  const state = credentials.access === undefined ? 'missing' : 'wrong';
  return sandboxAnswer(403, `The header X-Access-Token is ${state}: it is needed to resume this sandbox`, to);
}

function matches(given: string | undefined, token: string): boolean {
  return given !== undefined && secretsEqual(given, token);
}
