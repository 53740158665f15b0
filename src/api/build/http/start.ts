import { Type } from '@sinclair/typebox';
import { StartBuildV2 } from '../../../protocol/api/template-build.ts';
import { AtollError } from '../../../base/error.ts';
import { findOwnBuild } from '../rules/find.ts';
import { planOfDockerfile } from '../rules/rebuild.ts';
import { planOfSteps, startBuild } from '../rules/start.ts';
import { assertMayBuild } from '../rules/permission.ts';
import { bodyBytesMax } from '../../http/body.ts';
import { route } from '../../http/route.ts';
import type { AwaitDeps } from '../rules/awaited.ts';
import type { StartDeps } from '../rules/start.ts';
import type { BuildsAllowed } from '../../../protocol/build.ts';

const params = Type.Object({ templateID: Type.String(), buildID: Type.String() });
const responses = { 202: { description: 'The build runs' } };

/** `POST /v2/templates/{templateID}/builds/{buildID}` */
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
  errors: [404],
  async handle(
    deps: StartDeps & AwaitDeps & { buildsAllowed: BuildsAllowed },
    { caller, params, body, userAgent, audit },
  ) {
    assertMayBuild(deps.buildsAllowed, caller);
    const { build } = await findOwnBuild(deps.db, caller.team, params.templateID, params.buildID);
    audit({ target: `build:${build.buildId}`, before: { status: build.status }, after: { status: 'building' } });
    await startBuild(deps, caller.team, build, await planOfSteps(deps, caller.team, body, userAgent));
    return { status: 202 };
  },
});

/** `POST /templates/{templateID}/builds/{buildID}` */
export const startBuildV1 = route({
  operationId: 'startTemplateBuild',
  method: 'POST',
  path: '/templates/{templateID}/builds/{buildID}',
  summary: 'Start a build that was registered with a Dockerfile',
  deprecated: true,
  auth: 'teamOrUser',
  params,
  responses,
  errors: [404],
  async handle(deps: StartDeps & AwaitDeps & { buildsAllowed: BuildsAllowed }, { caller, params, audit }) {
    assertMayBuild(deps.buildsAllowed, caller);
    const { build } = await findOwnBuild(deps.db, caller.team, params.templateID, params.buildID);
    audit({ target: `build:${build.buildId}`, before: { status: build.status }, after: { status: 'building' } });
    // A rebuild starts by itself; starting it again, as old clients do, changes nothing.
    if (build.status !== 'waiting') return { status: 202 };
    if (!build.request)
      throw new AtollError('invalid', 'The build was registered without a Dockerfile: start it with its steps');
    await startBuild(deps, caller.team, build, await planOfDockerfile(deps, caller.team, build.request));
    return { status: 202 };
  },
});
