import { Type } from '@sinclair/typebox';
import { SandboxDetail } from '../../protocol/api/sandbox.ts';
import { sandboxFor } from '../app/sandbox-find.ts';
import { route } from './route.ts';
import { sandboxDetailView } from './sandbox-view.ts';

export const sandboxParams = Type.Object({ sandboxID: Type.String() });

export const readSandbox = route({
  operationId: 'getSandbox',
  method: 'GET',
  path: '/sandboxes/{sandboxID}',
  summary: 'One sandbox, running or paused',
  auth: 'team',
  params: sandboxParams,
  responses: { 200: { description: 'The sandbox', schema: SandboxDetail } },
  errors: [400, 404],
  async handle(app, { caller, params }) {
    return { status: 200, body: sandboxDetailView(app, await sandboxFor(app, caller.team, params.sandboxID, 'read')) };
  },
});
