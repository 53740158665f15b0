import { Type } from '@sinclair/typebox';
import { SandboxDetail } from '../../../protocol/api/sandbox.ts';
import { sandboxFor } from '../rules/find.ts';
import { route } from '../../http/route.ts';
import { sandboxDetailView, viewersDetailView } from './view.ts';
import type { Db } from '../../database/db.ts';

/** The path parameter of a route about one sandbox. */
export const sandboxParams = Type.Object({ sandboxID: Type.String() });

/** `GET /sandboxes/{sandboxID}` */
export const readSandbox = route({
  operationId: 'getSandbox',
  method: 'GET',
  path: '/sandboxes/{sandboxID}',
  summary: 'Get a sandbox, running or paused',
  auth: 'team',
  params: sandboxParams,
  responses: { 200: { description: 'The sandbox', schema: SandboxDetail } },
  errors: [404],
  async handle({ db, seed }: { db: Db; seed: Uint8Array }, { caller, params }) {
    const detail = sandboxDetailView(seed, await sandboxFor(db, caller.team, params.sandboxID, 'read'));
    return { status: 200, body: caller.role === 'viewer' ? viewersDetailView(detail) : detail };
  },
});
