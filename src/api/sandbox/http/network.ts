import { NetworkQuestion, NetworkVerdict, SandboxNetworkUpdate } from '../../../protocol/api/network.ts';
import type { Features } from '../features.ts';
import { checkEgress, egressPolicyOf } from '../rules/network/config.ts';
import { verdictOnHost } from '../rules/network/verdict.ts';
import { updateNetworkOf } from '../workflows/network.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from './read.ts';
import type { NetworkDeps } from '../workflows/network.ts';

/** `PUT /sandboxes/{sandboxID}/network` */
export const updateSandboxNetwork = route({
  operationId: 'updateSandboxNetwork',
  method: 'PUT',
  path: '/sandboxes/{sandboxID}/network',
  summary: 'Replace the outgoing network rules of a running sandbox; members that are left out are cleared',
  auth: 'team',
  params: sandboxParams,
  body: SandboxNetworkUpdate,
  responses: { 204: { description: 'The new rules hold for every connection' } },
  errors: [404, 409],
  async handle(deps: NetworkDeps, { caller, params, body, audit }) {
    const { allow_internet_access: allowInternetAccess = null, ...egress } = body;
    const before = await updateNetworkOf(deps, caller.team, params.sandboxID, { allowInternetAccess, egress });
    // Only destinations: proxies and header rules carry secrets.
    const { allowOut = [], denyOut = [] } = before.network ?? {};
    audit({
      target: `sandbox:${before.sandboxId}`,
      before: { allowOut, denyOut, allowInternetAccess: before.allowInternetAccess },
      after: { allowOut: egress.allowOut ?? [], denyOut: egress.denyOut ?? [], allowInternetAccess },
    });
    return { status: 204 };
  },
});

/** `POST /network/verdict` */
export const networkVerdictRoute = route({
  operationId: 'getNetworkVerdict',
  method: 'POST',
  path: '/network/verdict',
  summary: 'Say whether a destination would pass a network policy, and by which rule; nothing is changed',
  auth: 'team',
  role: 'viewer',
  long: true,
  changes: false,
  body: NetworkQuestion,
  responses: { 200: { description: 'The verdict', schema: NetworkVerdict } },
  async handle({ features }: { features: Features }, { body }) {
    const { host, allow_internet_access: allowInternetAccess = null, ...network } = body;
    checkEgress(network, { prefix: '', allowInternetAccess, features, tokens: [] });
    return { status: 200, body: verdictOnHost(egressPolicyOf({ allowInternetAccess, network }), host) };
  },
});
