import { Type } from '@sinclair/typebox';
import {
  DockerfileBuild,
  RegisterBuild,
  RegisterBuildV2,
  RegisteredBuild,
} from '../../../protocol/api/template-build.ts';
import { Template } from '../../../protocol/api/template.ts';
import { OnceHeaders } from '../../../protocol/api/sandbox.ts';
import type {
  DockerfileBuild as DockerfileBody,
  RegisterBuild as RegisterBody,
  RegisteredBuild as RegisteredBody,
} from '../../../protocol/api/template-build.ts';
import { once, type OnceDeps } from '../../repeat/rules/once.ts';
import { registerBuild } from '../rules/register.ts';
import type { AskedBuild } from '../rules/register.ts';
import { requireOwnTeam } from '../../team/rules/own-team.ts';
import { rebuildTemplate } from '../rules/rebuild.ts';
import { listedTemplate } from '../../template/rules/list.ts';
import { assertMayBuild } from '../rules/permission.ts';
import { bodyBytesMax } from '../../http/body.ts';
import { route } from '../../http/route.ts';
import { templateView } from '../../template/http/view.ts';
import type { Clock } from '../../../base/clock.ts';
import type { BuildsAllowed } from '../../../protocol/build.ts';
import type { AwaitDeps } from '../rules/awaited.ts';
import type { StartDeps } from '../rules/start.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import type { Db } from '../../database/db.ts';
import type { Change } from '../../event/record.ts';

/** `POST /v3/templates` */
export const registerBuildV3 = route({
  operationId: 'createTemplateV3',
  method: 'POST',
  path: '/v3/templates',
  summary: 'Register a build; it waits until it is started',
  auth: 'team',
  body: RegisterBuild,
  headers: OnceHeaders,
  responses: { 202: { description: 'The build waits', schema: RegisteredBuild } },
  errors: [404, 409, 429],
  async handle(
    deps: OnceDeps & { buildsAllowed: BuildsAllowed; limitsOf: LimitsOf },
    { caller, headers, body, audit },
  ) {
    assertMayBuild(deps.buildsAllowed, caller);
    const { team } = caller;
    requireOwnTeam(team, body.teamID);
    const asked = askedOf(body);
    const key = headers['idempotency-key'];
    const request = { teamId: team.teamId, operation: 'createTemplateV3', key, asked };
    const registered = await once(deps, request, async () =>
      registeredView(team, await registerBuild(deps, team, asked)),
    );
    audit({ target: `build:${registered.buildID}`, after: { templateId: registered.templateID } });
    return { status: 202, body: registered };
  },
});

function registeredView(
  { slug }: TeamRecord,
  { template, buildId, name, tags }: Awaited<ReturnType<typeof registerBuild>>,
): RegisteredBody {
  return {
    templateID: template.templateId,
    buildID: buildId,
    public: template.public,
    names: [`${slug}/${name}`],
    tags,
    aliases: [name],
  };
}

const listed = { description: 'The build waits', schema: Template };

/** `POST /v2/templates` */
export const registerBuildV2 = route({
  operationId: 'createTemplateV2',
  method: 'POST',
  path: '/v2/templates',
  summary: 'Register a build',
  deprecated: true,
  auth: 'team',
  body: RegisterBuildV2,
  responses: { 202: listed },
  errors: [404, 409, 429],
  async handle(
    deps: { buildsAllowed: BuildsAllowed; clock: Clock; db: Db; limitsOf: LimitsOf },
    { caller, body, audit },
  ) {
    assertMayBuild(deps.buildsAllowed, caller);
    requireOwnTeam(caller.team, body.teamID);
    return waiting(deps.db, audit, await registerBuild(deps, caller.team, askedOf(body)));
  },
});

/** Answers the template of a waiting build. */
async function waiting(
  db: Db,
  audit: (change: Change) => void,
  { template: { templateId }, buildId }: { template: { templateId: string }; buildId: string },
) {
  audit({ target: `build:${buildId}`, after: { templateId } });
  return { status: 202 as const, body: { ...templateView(await listedTemplate(db, templateId)), buildID: buildId } };
}

/** The request in the platform's own words. */
function askedOf(body: RegisterBody & { minFreeDiskMb?: number }): AskedBuild {
  const { alias, name = alias, tags, cpuCount, memoryMB, minFreeDiskMb } = body;
  return {
    ...(name !== undefined && { name }),
    ...(tags && { tags }),
    ...(cpuCount !== undefined && { cpuCount }),
    ...(memoryMB !== undefined && { memoryMiB: memoryMB }),
    ...(minFreeDiskMb !== undefined && { freeDiskMiB: minFreeDiskMb }),
  };
}

function rebuildOf({ alias, cpuCount, memoryMB }: DockerfileBody): Pick<AskedBuild, 'name' | 'cpuCount' | 'memoryMiB'> {
  return {
    ...(alias !== undefined && { name: alias }),
    ...(cpuCount !== undefined && { cpuCount }),
    ...(memoryMB !== undefined && { memoryMiB: memoryMB }),
  };
}

const requestOf = ({ dockerfile, startCmd, readyCmd }: DockerfileBody) => ({
  dockerfile,
  ...(startCmd && { startCmd }),
  ...(readyCmd && { readyCmd }),
});

/** `POST /templates` */
export const registerBuildV1 = route({
  operationId: 'createTemplate',
  method: 'POST',
  path: '/templates',
  summary: 'Register a build of a Dockerfile for a new template',
  deprecated: true,
  auth: 'teamOrUser',
  body: DockerfileBuild,
  bodyBytesMax: bodyBytesMax.build,
  responses: { 202: listed },
  errors: [404, 409, 429],
  async handle(deps: StartDeps & AwaitDeps & { buildsAllowed: BuildsAllowed }, { caller, body, audit }) {
    assertMayBuild(deps.buildsAllowed, caller);
    requireOwnTeam(caller.team, body.teamID);
    return waiting(deps.db, audit, await rebuildTemplate(deps, caller.team, null, rebuildOf(body), requestOf(body)));
  },
});

/** `POST /templates/{templateID}` */
export const rebuildTemplateRoute = route({
  operationId: 'rebuildTemplate',
  method: 'POST',
  path: '/templates/{templateID}',
  summary: 'Rebuild a template from a Dockerfile',
  auth: 'teamOrUser',
  params: Type.Object({ templateID: Type.String() }),
  body: DockerfileBuild,
  bodyBytesMax: bodyBytesMax.build,
  responses: { 202: listed },
  errors: [404, 409, 429],
  async handle(deps: StartDeps & AwaitDeps & { buildsAllowed: BuildsAllowed }, { caller, params, body, audit }) {
    assertMayBuild(deps.buildsAllowed, caller);
    requireOwnTeam(caller.team, body.teamID);
    const { templateID } = params;
    return waiting(
      deps.db,
      audit,
      await rebuildTemplate(deps, caller.team, templateID, rebuildOf(body), requestOf(body)),
    );
  },
});
