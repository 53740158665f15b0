import { Type } from '@sinclair/typebox';
import { StartBuildV2 } from '../../protocol/api/template-build.ts';
import { AtollError } from '../../base/error.ts';
import { findOwnBuild } from '../app/build-find.ts';
import { planOfDockerfile } from '../app/build-rebuild.ts';
import { planOfSteps, startBuild } from '../app/build-start.ts';
import { assertMayBuild } from '../app/build-permission.ts';
import { bodyBytesMax } from './body.ts';
import { route } from './route.ts';

const params = Type.Object({ templateID: Type.String(), buildID: Type.String() });
const responses = { 202: { description: 'The build runs' } };

export const startBuildRoute = route({
  operationId: 'startTemplateBuildV2',
  method: 'POST',
  path: '/v2/templates/{templateID}/builds/{buildID}',
  summary: 'Start a registered build with its steps',
  auth: 'team',
  params,
  body: StartBuildV2,
  bodyBytesMax: bodyBytesMax.build,
  responses,
  errors: [404, 503],
  async handle(app, { caller, params, body, userAgent, note }) {
    assertMayBuild(app, caller);
    const { build } = await findOwnBuild(app, caller.team, params.templateID, params.buildID);
    note({ target: `build:${build.buildId}`, before: { status: build.status }, after: { status: 'building' } });
    await startBuild(app, caller.team, build, await planOfSteps(app, caller.team, body, userAgent));
    return { status: 202 };
  },
});

export const startBuildV1 = route({
  operationId: 'startTemplateBuild',
  method: 'POST',
  path: '/templates/{templateID}/builds/{buildID}',
  summary: 'Start a build that was registered with a Dockerfile',
  deprecated: true,
  auth: 'teamOrUser',
  params,
  responses,
  errors: [400, 404, 503],
  async handle(app, { caller, params, note }) {
    assertMayBuild(app, caller);
    const { build } = await findOwnBuild(app, caller.team, params.templateID, params.buildID);
    note({ target: `build:${build.buildId}`, before: { status: build.status }, after: { status: 'building' } });
    if (!build.request) throw new AtollError('invalid', 'The build was registered without a Dockerfile: start it with its steps');
    // A rebuild starts by itself; starting it again, as old clients do, changes nothing.
    if (build.status === 'waiting') await startBuild(app, caller.team, build, await planOfDockerfile(app, caller.team, build.request));
    return { status: 202 };
  },
});
