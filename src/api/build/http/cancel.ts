import { Type } from '@sinclair/typebox';
import { cancelBuild } from '../rules/cancel.ts';
import { findOwnBuild } from '../rules/find.ts';
import { route } from '../../http/route.ts';
import type { CancelDeps } from '../rules/follow.ts';

/** `POST /templates/{templateID}/builds/{buildID}/cancel` */
export const cancelBuildRoute = route({
  operationId: 'cancelTemplateBuild',
  method: 'POST',
  path: '/templates/{templateID}/builds/{buildID}/cancel',
  summary: 'Cancel a build that waits or runs',
  auth: 'teamOrUser',
  params: Type.Object({ templateID: Type.String(), buildID: Type.String() }),
  responses: { 204: { description: 'The build has ended with an error that says so, or had ended with one before' } },
  errors: [404, 409],
  async handle(deps: CancelDeps, { caller, params, audit }) {
    const { build } = await findOwnBuild(deps.db, caller.team, params.templateID, params.buildID);
    audit({ target: `build:${build.buildId}`, before: { status: build.status }, after: { status: 'error' } });
    await cancelBuild(deps, build);
    return { status: 204 };
  },
});
