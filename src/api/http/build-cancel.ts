import { Type } from '@sinclair/typebox';
import { cancelBuild } from '../app/build-cancel.ts';
import { findOwnBuild } from '../app/build-find.ts';
import { route } from './route.ts';

export const cancelBuildRoute = route({
  operationId: 'cancelTemplateBuild',
  method: 'POST',
  path: '/templates/{templateID}/builds/{buildID}/cancel',
  summary: 'End a build that waits or runs',
  auth: 'teamOrUser',
  params: Type.Object({ templateID: Type.String(), buildID: Type.String() }),
  responses: { 204: { description: 'The build has ended with an error that says so, or had ended with one before' } },
  errors: [404, 409],
  async handle(app, { caller, params, note }) {
    const { build } = await findOwnBuild(app, caller.team, params.templateID, params.buildID);
    note({ target: `build:${build.buildId}`, before: { status: build.status }, after: { status: 'error' } });
    await cancelBuild(app, build);
    return { status: 204 };
  },
});
