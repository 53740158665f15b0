import { AtollError } from '../../base/error.ts';
import type { BuildState } from '../../protocol/build.ts';
import type { DockerfileBuild } from '../../protocol/api/template-build.ts';
import { findBuild } from '../store/build-read.ts';
import type { BuildRequest } from '../store/build-read.ts';
import { unnameTemplate } from '../store/template-change.ts';
import { namesOf } from '../store/template-list.ts';
import { nameTemplate } from '../store/template-write.ts';
import { templateByName } from '../store/template-resolve.ts';
import type { TemplateRecord } from '../store/template-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { registerBuild, registerBuildOf } from './build-register.ts';
import type { Registered } from './build-register.ts';
import { standingIn, startBuild, templateOfImage } from './build-start.ts';
import type { BuildPlan } from './build-start.ts';
import type { App } from './context.ts';
import { parseReference } from './template-reference.ts';
import { ownTemplate } from './template-tags.ts';

/**
 * Registers a build of a Dockerfile, of a template that is there or, without `text`, of a new one. The former is started
 * at once: nobody asks for more. Throws `invalid`, `not_found`, `forbidden`, `conflict`, `rate_limited`, `unavailable`.
 */
export async function rebuildTemplate(app: App, team: TeamRecord, text: string | null, asked: DockerfileBuild, request: BuildRequest): Promise<Registered> {
  const plan = await planOfDockerfile(app, team, request);
  const { teamID, cpuCount, memoryMB, alias } = asked;
  if (teamID !== undefined && teamID !== team.teamId) throw new AtollError('invalid', 'teamID: is not the team of the credential');
  const sizes = { ...(cpuCount !== undefined && { cpuCount }), ...(memoryMB !== undefined && { memoryMB }) };
  if (text === null) {
    const name = alias ?? `template-${Bun.hash(asked.dockerfile).toString(36)}`;
    return registerBuild(app, team, { ...sizes, name, request });
  }
  const { template } = await ownTemplate(app, team, text, 'templateID');
  if (alias !== undefined) await renameTemplate(app, team, template, alias);
  const registered = await registerBuildOf(app, team, template, { ...sizes, request });
  const build = await findBuild(app.store.db, registered.buildId);
  if (build) await startBuild(app, team, build, plan);
  return registered;
}

/** What a Dockerfile says. Throws `invalid` with the line for what can't be built. */
export async function planOfDockerfile(app: App, team: TeamRecord, request: BuildRequest): Promise<BuildPlan> {
  const stages = await app.builder.readDockerfile(request.dockerfile);
  const names = stages.flatMap(stage => [stage.from, ...stage.instructions.flatMap(instruction => (instruction.kind === 'copy' ? [instruction.from] : []))]);
  const templates: Record<string, BuildState> = {};
  for (const name of new Set(names)) {
    const template = templateOfImage(name);
    const source = template === undefined ? undefined : await standingIn(app, team, template, name);
    if (source?.kind === 'state') templates[name] = source.state;
  }
  return {
    source: { kind: 'dockerfile', stages, templates },
    steps: [],
    force: false,
    startsAsUser: false,
    ...(request.startCmd !== undefined && { startCommand: request.startCmd }),
    ...(request.readyCmd !== undefined && { readyCommand: request.readyCmd }),
  };
}

/** Moves the template's name in the team's namespace. Throws `conflict` where another template has it. */
async function renameTemplate(app: App, team: TeamRecord, { templateId }: TemplateRecord, alias: string): Promise<void> {
  const { name } = parseReference(alias, 'alias');
  await app.store.db.transaction().execute(async db => {
    const holder = await templateByName(db, team.slug, name);
    if (holder?.templateId === templateId) return;
    if (holder) throw new AtollError('conflict', `alias: "${name}" is the name of another template`);
    for (const old of (await namesOf(db, [templateId])).get(templateId) ?? []) if (old.namespace === team.slug) await unnameTemplate(db, old);
    await nameTemplate(db, { namespace: team.slug, alias: name, templateId, nowUs: app.clock() });
  });
}
