import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { registerBuildOf } from '../build/rules/register.ts';
import { startBuild, type BuildPlan } from '../build/rules/start.ts';
import { ensurePublicTemplate } from '../template/rules/provision.ts';
import { resolveBuild } from '../template/rules/reference.ts';
import { findBuild } from '../build/store/read.ts';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { BuildSource, BuildState, BuildStep } from '../../protocol/build.ts';
import type { ShippedDefinition } from '../../protocol/shipped.ts';
import type { ShippedTemplatesOptions } from './options.ts';

type Definition = {
  name: string;
  definition: ShippedDefinition;
  /** What an installation of this machine made of it before. */ cached: BuildState | null;
};

/** The work of a shipped template's build: its definition, or nothing more where the outcome is at hand. */
export async function planOfDefinition(
  options: ShippedTemplatesOptions,
  { name, definition, cached }: Definition,
): Promise<BuildPlan> {
  const commands = {
    ...(definition.startCmd && { startCommand: definition.startCmd }),
    ...(definition.readyCmd && { readyCommand: definition.readyCmd }),
  };
  // Shipped templates are the operator's own, however strangers' code is isolated.
  const shared = { force: false, driver: 'crun' as const, ...commands };
  if (cached) return { ...shared, startsAsUser: false, steps: [], source: { kind: 'state', state: cached } };
  const source = await sourceOf(options, name, definition);
  const filesHash = definition.files && (await keepFiles(options, name));
  const steps = (definition.steps ?? []).map((step): BuildStep => ({
    ...step,
    force: false,
    ...(step.type === 'COPY' && filesHash !== undefined && { filesHash }),
  }));
  return { ...shared, startsAsUser: true, steps, source };
}

async function sourceOf(
  { parts, shipped, team, settings, signal }: ShippedTemplatesOptions,
  name: string,
  { fromTemplate, fromMachine }: ShippedDefinition,
): Promise<BuildSource> {
  if (fromTemplate !== undefined) {
    const { build } = await resolveBuild(parts.db, team, fromTemplate);
    const { buildEnv, defaultUser, defaultWorkdir } = build.config;
    return {
      kind: 'state',
      state: { layers: build.layers, env: buildEnv, user: defaultUser, workdir: defaultWorkdir },
    };
  }
  if (!fromMachine)
    throw new AtollError('invalid', `${name}: the definition says neither fromTemplate nor fromMachine`);
  const { baseImage } = settings;
  if (baseImage !== undefined && !isAbsolute(baseImage)) return { kind: 'image', reference: baseImage };
  const baseRootfs = await shipped.baseRootfs(name, signal);
  return { kind: 'state', state: { layers: [baseRootfs], env: {}, user: 'root', workdir: '' }, provisions: true };
}

/** Puts the files in the folder of uploads, and answers their hash. */
async function keepFiles({ parts, team, shipped }: ShippedTemplatesOptions, name: string): Promise<string> {
  const archive = Buffer.from(await shipped.files(name), 'base64');
  const hash = createHash('sha256').update(archive).digest('hex');
  const dir = join(parts.filesDir, team.teamId);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = join(dir, hash);
  // Like an upload, it has its name only once it is complete, whoever copies it meanwhile.
  const temporary = `${path}.${newUuid()}`;
  writeFileSync(temporary, archive, { mode: 0o600 });
  renameSync(temporary, path);
  if (parts.sharedUploads) {
    await parts.sharedUploads.keep({ teamId: team.teamId, hash }, { path, sizeBytes: archive.length });
    rmSync(path);
  }
  return hash;
}

type Outcome = { isReady: true; buildId: string; state: BuildState } | { isReady: false; reason: string };

/** Runs a build through the api like any other, and answers when it has ended. */
export async function runShippedBuild(
  { parts, team, onPhase, signal }: ShippedTemplatesOptions,
  { name, definition, plan }: { name: string; definition: ShippedDefinition; plan: BuildPlan },
): Promise<Outcome> {
  const template = await ensurePublicTemplate(parts, team, name);
  const { cpuCount, memoryMB } = definition;
  const { buildId } = await registerBuildOf(parts, team, template, {
    ...(cpuCount !== undefined && { cpuCount }),
    ...(memoryMB !== undefined && { memoryMiB: memoryMB }),
  });
  const registered = await findBuild(parts.db, buildId);
  if (!registered) throw new AtollError('internal', 'the new build is not there');
  onPhase('building');
  await startBuild(parts, team, registered, plan);
  const ended = parts.followedBuilds.underWay(buildId) ?? Promise.resolve();
  const stop = () => void parts.builder.cancel(buildId, 'The platform was stopped');
  signal.addEventListener('abort', stop, { once: true });
  try {
    await ended;
  } finally {
    signal.removeEventListener('abort', stop);
  }
  signal.throwIfAborted();
  const build = await findBuild(parts.db, buildId);
  if (build?.status !== 'ready') return { isReady: false, reason: build?.reason?.message ?? 'it was deleted' };
  const { buildEnv, defaultUser, defaultWorkdir } = build.config;
  return {
    isReady: true,
    buildId,
    state: { layers: build.layers, env: buildEnv, user: defaultUser, workdir: defaultWorkdir },
  };
}
