import { Type } from '@sinclair/typebox';
import { DockerfileBuild, RegisterBuild, RegisterBuildV2, RegisteredBuild } from '../../protocol/api/template-build.ts';
import { Template } from '../../protocol/api/template.ts';
import type { DockerfileBuild as DockerfileBody, RegisteredBuild as RegisteredBody } from '../../protocol/api/template-build.ts';
import { registerBuild } from '../app/build-register.ts';
import { rebuildTemplate } from '../app/build-rebuild.ts';
import { listedTemplate } from '../app/template-list.ts';
import { assertMayBuild } from '../app/build-permission.ts';
import { bodyBytesMax } from './body.ts';
import { route } from './route.ts';
import { templateView } from './template-view.ts';

export const registerBuildV3 = route({
  operationId: 'createTemplateV3',
  method: 'POST',
  path: '/v3/templates',
  summary: 'Register a build; it waits until it is started',
  auth: 'team',
  body: RegisterBuild,
  responses: { 202: { description: 'The build waits', schema: RegisteredBuild } },
  errors: [404, 409, 429],
  async handle(app, { caller, body, note }) {
    assertMayBuild(app, caller);
    const { template, buildId, name, tags } = await registerBuild(app, caller.team, body);
    note({ target: `build:${buildId}`, after: { templateId: template.templateId } });
    const { templateId, public: isPublic } = template;
    const names = [`${caller.team.slug}/${name}`];
    const registered: RegisteredBody = { templateID: templateId, buildID: buildId, public: isPublic, names, tags, aliases: [name] };
    return { status: 202, body: registered };
  },
});

const listed = { description: 'The build waits', schema: Template };

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
  async handle(app, { caller, body, note }) {
    assertMayBuild(app, caller);
    const { template, buildId } = await registerBuild(app, caller.team, body);
    note({ target: `build:${buildId}`, after: { templateId: template.templateId } });
    return { status: 202, body: { ...templateView(await listedTemplate(app, template.templateId)), buildID: buildId } };
  },
});

const requestOf = ({ dockerfile, startCmd, readyCmd }: DockerfileBody) => ({
  dockerfile,
  ...(startCmd && { startCmd }),
  ...(readyCmd && { readyCmd }),
});

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
  async handle(app, { caller, body, note }) {
    assertMayBuild(app, caller);
    const { template, buildId } = await rebuildTemplate(app, caller.team, null, body, requestOf(body));
    note({ target: `build:${buildId}`, after: { templateId: template.templateId } });
    return { status: 202, body: { ...templateView(await listedTemplate(app, template.templateId)), buildID: buildId } };
  },
});

export const rebuildTemplateRoute = route({
  operationId: 'rebuildTemplate',
  method: 'POST',
  path: '/templates/{templateID}',
  summary: 'Build a template anew from a Dockerfile',
  auth: 'teamOrUser',
  params: Type.Object({ templateID: Type.String() }),
  body: DockerfileBuild,
  bodyBytesMax: bodyBytesMax.build,
  responses: { 202: listed },
  errors: [404, 409, 429, 503],
  async handle(app, { caller, params, body, note }) {
    assertMayBuild(app, caller);
    const { template, buildId } = await rebuildTemplate(app, caller.team, params.templateID, body, requestOf(body));
    note({ target: `build:${buildId}`, after: { templateId: template.templateId } });
    return { status: 202, body: { ...templateView(await listedTemplate(app, template.templateId)), buildID: buildId } };
  },
});
