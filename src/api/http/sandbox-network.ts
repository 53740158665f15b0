import { SandboxNetworkUpdate } from '../../protocol/api/network.ts';
import { updateNetworkOf } from '../app/sandbox-network.ts';
import { route } from './route.ts';
import { sandboxParams } from './sandbox-read.ts';

export const updateSandboxNetwork = route({
  operationId: 'updateSandboxNetwork',
  method: 'PUT',
  path: '/sandboxes/{sandboxID}/network',
  summary: 'Replace what may leave a running sandbox; a member that is left out is cleared',
  auth: 'team',
  params: sandboxParams,
  body: SandboxNetworkUpdate,
  responses: { 204: { description: 'The new rules hold for every connection' } },
  errors: [404, 409],
  async handle(app, { caller, params, body, note }) {
    const before = await updateNetworkOf(app, caller.team, params.sandboxID, body);
    // Destinations alone: proxies and header rules carry secrets.
    const { allowOut = [], denyOut = [] } = before.network ?? {};
    note({
      target: `sandbox:${before.sandboxId}`,
      before: { allowOut, denyOut, allowInternetAccess: before.allowInternetAccess },
      after: { allowOut: body.allowOut ?? [], denyOut: body.denyOut ?? [], allowInternetAccess: body.allow_internet_access ?? null },
    });
    return { status: 204 };
  },
});
