import { AtollError } from '../../../base/error.ts';
import { newTemplateId, newUuid, isUuid } from '../../../base/id.ts';
import { findBuild } from '../../build/store/read.ts';
import type { Db } from '../../database/db.ts';
import { isOutcomeUnknown } from '../../database/postgres/driver.ts';
import { recordSandboxEvent } from '../../sandbox/store/events.ts';
import { templateByName } from '../../template/store/resolve.ts';
import { addReadyBuild, insertTemplate, nameTemplate } from '../../template/store/write.ts';
import { snapshotSandboxWorkflow } from '../../sandbox/workflows/snapshot-steps.ts';
import type { SnapshotWork, TakenSnapshot, WhatToTake } from '../../sandbox/workflows/snapshot-steps.ts';
import { memoryUnavailable } from '../../sandbox/rules/memory.ts';
import { sandboxFor } from '../../sandbox/rules/find.ts';
import type { SnapshotName } from '../rules/list.ts';
import { requireSnapshotPlace } from '../../build/rules/quota.ts';
import { lockTeam } from '../../team/store/lock.ts';
import { requireTagPlaces } from '../../template/rules/tags.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import { driverOf } from '../../template/rules/driver.ts';
import { defaultTag, parseReference } from '../../template/rules/reference.ts';
import type { SandboxRecord } from '../../sandbox/record.ts';
import type { BuildConfig } from '../../build/record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { TemplateDrivers } from '../../template/rules/driver.ts';
import type { Clock } from '../../../base/clock.ts';

/** Dependencies of a snapshot. */
export type SnapshotDeps = SnapshotWork & { limitsOf: LimitsOf; templateDrivers: TemplateDrivers };

/** A client's name for a snapshot: its template's name, or ID where it has none, and the tag. */
type WantedName = { alias: string | null; tag: string };

/**
 * Makes a template from a running sandbox, which runs on. Sandboxes made from it start in its present state: with its
 * processes where memory can be kept and is wanted (the default), else with its files. If the team has the name
 * already, it gets another build. Errors: `invalid`, `not_found`, `conflict`, `no_space`, `rate_limited`.
 */
export async function snapshotSandbox(
  deps: SnapshotDeps,
  team: TeamRecord,
  sandboxId: string,
  { name, memory: wantsMemory = true }: { name?: string; memory?: boolean },
): Promise<SnapshotName> {
  const wanted = name === undefined ? { alias: null, tag: defaultTag } : parseName(team, name);
  const sandbox = await sandboxFor(deps.db, team, sandboxId, 'snapshot');
  // Refuses before anything is done.
  await templateFor(deps.db, team, wanted);
  await requireSnapshotPlace(deps.db, deps.limitsOf, team);
  const config = await bootConfigOf(deps, sandbox);
  const memory = await deps.nodes.get(sandbox.nodeId).memoryAbility(sandbox);
  const taken = await takeSnapshot(deps, sandbox, { memory: memory.kept && wantsMemory });
  try {
    return await record(deps, team, sandbox, { wanted, taken, config });
  } catch (error) {
    // If nobody knows whether it was recorded, it may be needed: the reconciler removes it otherwise.
    if (!isOutcomeUnknown(error))
      await deps.nodes
        .get(sandbox.nodeId)
        .deleteSnapshot(taken.snapshotId)
        .catch(() => {}); // the reconciler does it
    throw error;
  }
}

/** Takes a snapshot of a running sandbox for others to start from. Errors: `conflict`, `precondition`, `no_space`. */
export async function takeSnapshot(
  deps: SnapshotWork,
  sandbox: SandboxRecord,
  what: WhatToTake,
): Promise<TakenSnapshot> {
  try {
    return await snapshotSandboxWorkflow(deps, sandbox, what);
  } catch (error) {
    if (!(error instanceof AtollError)) throw error;
    if (error.code === 'precondition')
      throw new AtollError('precondition', error.message, {
        detail: memoryUnavailable,
        fields: error.fields,
        cause: error,
      });
    if (error.code === 'not_found')
      throw new AtollError('conflict', `Sandbox "${sandbox.sandboxId}" ended while it was snapshotted`, {
        cause: error,
      });
    if (error.forLog)
      throw new AtollError('internal', 'Keeping the sandbox failed; the log of the platform has why', {
        ...(error.detail !== undefined && { detail: error.detail }),
        fields: error.fields,
        cause: error,
      });
    throw error;
  }
}

/** How sandboxes made from this sandbox's template boot. */
export async function bootConfigOf(
  deps: { db: Db; templateDrivers: TemplateDrivers },
  sandbox: SandboxRecord,
): Promise<BuildConfig> {
  const build = await findBuild(deps.db, sandbox.buildId);
  if (!build)
    throw new AtollError('conflict', `The build that sandbox "${sandbox.sandboxId}" was made from was deleted`);
  const { memorySnapshotId: _, memoryNodeId: __, volumeMounts: ___, started: ____, ...config } = build.config;
  const driver = await driverOf(deps, build);
  return { ...config, ...(driver !== undefined && { driver }) };
}

function parseName(team: TeamRecord, text: string): WantedName {
  const { namespace, name, tag } = parseReference(text, 'name');
  if (namespace !== null && namespace !== team.slug)
    throw new AtollError('invalid', `name: the namespace "${namespace}" is not your team's ("${team.slug}")`);
  if (tag !== null && isUuid(tag))
    throw new AtollError('invalid', `name: the tag "${tag}" can't be told from a build's ID`);
  return { alias: name, tag: tag ?? defaultTag };
}

/** The template that gets the build; undefined where it must be made first. */
async function templateFor(db: Db, team: TeamRecord, { alias }: WantedName): Promise<string | undefined> {
  if (alias === null) return undefined;
  const known = await templateByName(db, team.slug, alias);
  if (known && known.kind !== 'snapshot')
    throw new AtollError('conflict', `name: "${alias}" is the name of a template; snapshots need a name of their own`);
  return known?.templateId;
}

async function record(
  { clock, db, limitsOf }: { clock: Clock; db: Db; limitsOf: LimitsOf },
  team: TeamRecord,
  sandbox: SandboxRecord,
  { wanted, taken, config }: { wanted: WantedName; taken: TakenSnapshot; config: BuildConfig },
): Promise<SnapshotName> {
  const nowUs = clock();
  const { alias, tag } = wanted;
  return db.transaction().execute(async db => {
    await lockTeam(db, team.teamId);
    await requireSnapshotPlace(db, limitsOf, team);
    const known = await templateFor(db, team, wanted);
    const templateId = known ?? newTemplateId();
    await requireTagPlaces(db, templateId, [tag]);
    if (known === undefined) {
      await insertTemplate(db, { templateId, teamId: team.teamId, kind: 'snapshot', public: false, nowUs });
      if (alias !== null) await nameTemplate(db, { namespace: team.slug, alias, templateId, nowUs });
    }
    const build = {
      buildId: newUuid(),
      templateId,
      cpuCount: sandbox.cpuCount,
      memoryMiB: sandbox.memoryMiB,
      diskMiB: sandbox.diskMiB,
      agentVersion: sandbox.agentVersion,
      layers: taken.layers,
      config: {
        ...config,
        ...(sandbox.volumeMounts.length > 0 && { volumeMounts: sandbox.volumeMounts }),
        ...(taken.kept === 'memory' && { memorySnapshotId: taken.snapshotId, memoryNodeId: sandbox.nodeId }),
      },
    };
    await addReadyBuild(db, build, { sandboxId: sandbox.sandboxId, tag, nowUs });
    const data = { snapshot_id: templateId, snapshot_build_id: build.buildId, kept: taken.kept };
    await recordSandboxEvent(db, sandbox, { type: 'checkpointed', atUs: nowUs, data });
    return { templateId, tag, names: alias === null ? [] : [`${team.slug}/${alias}`] };
  });
}
