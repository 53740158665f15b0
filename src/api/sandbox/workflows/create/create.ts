import { AtollError } from '../../../../base/error.ts';
import { newSandboxId, newUuid } from '../../../../base/id.ts';
import { step } from '../../../../base/telemetry/trace.ts';
import { agentVersion } from '../../../../protocol/agent.ts';
import { isPartLost } from '../../../../protocol/part-lost.ts';
import type { VolumeMount } from '../../../../protocol/api/sandbox.ts';
import type { Durability } from '../../../../protocol/durability.ts';
import type { TemplateImage } from '../../../../protocol/node.ts';
import type { DriverName } from '../../../../protocol/driver.ts';
import { nodeFull, saysFull } from '../../../../protocol/no-room.ts';
import { volumeChanged } from '../../../../protocol/volume.ts';
import { isServerFailure } from '../../../../protocol/template/server-failure.ts';
import { noCompatibleNode } from '../../../placement/nodes.ts';
import type { Placed } from '../../../placement/place.ts';
import { createSandboxWorkflow } from './steps.ts';
import { type AwaitDeps, resolveAwaitedBuild } from '../../../build/rules/awaited.ts';
import { checkRuleSecrets } from '../../rules/network/egress-policy.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import type { DurableSnapshots } from '../../../blob/rules/snapshots.ts';
import { placeWith } from '../../rules/place/memory.ts';
import { demandsOf } from '../../rules/demands.ts';
import { requireDurable, usualDurability } from '../../rules/durability.ts';
import { requireMemoryOfDriver } from '../../rules/memory.ts';
import { encryptNetwork } from '../../rules/network/encrypted.ts';
import { checkSandboxOptions } from '../../rules/create/options.ts';
import { restoreFailed } from '../resume/resume.ts';
import { checkTimeout } from '../../rules/timeout.ts';
import { driverOf } from '../../../template/rules/driver.ts';
import { homeOfVolumes, inheritedMounts, resolveVolumeMounts } from '../../rules/create/volume-mounts.ts';
import type { MountedVolume, SandboxOptions, SandboxRecord } from '../../record.ts';
import type { BuildRecord } from '../../../build/record.ts';
import type { TeamRecord } from '../../../team/record.ts';
import type { CreateWork } from './steps.ts';
import type { TemplateDrivers } from '../../../template/rules/driver.ts';
import type { Features } from '../../features.ts';
import type { Repeatable } from '../../store/idempotency.ts';
import type { Clock } from '../../../../base/clock.ts';
import type { LimitsOf } from '../../../team/rules/limits.ts';

/** Dependencies of checking and creating a sandbox. */
export type CreateDeps = CreateWork &
  AwaitDeps & {
    /** Null: nothing is kept outside of its machine. */
    durablePauses: DurablePauses | null;
    durableSnapshots: DurableSnapshots | null;
    features: Features;
    requireSecure: boolean;
    templateDrivers: TemplateDrivers;
  };

/** A requested sandbox. */
export type NewSandboxRequest = {
  /** `[namespace/]name[:tag]`, or an ID. */
  template: string;
  /** By the volumes' names. */
  volumeMounts: VolumeMount[];
  options: SandboxOptions;
  /** The request does not say what an automatic pause should survive: the team's default applies, where possible. */
  isDurabilityUsual?: boolean;
};

/**
 * A client waits 60 s by default: a create that takes longer is undone, so that no sandbox runs unknown to everybody.
 */
const createDeadlineMs = 50_000;

/**
 * Creates a sandbox and answers when its agent accepts requests. A refused request leaves nothing behind. With
 * `repeatable`, its key is taken together with the sandbox's row; `conflict` where another create has it. Errors:
 * `invalid`, `forbidden` (a feature that is not offered), `not_found` (template), `rate_limited` (concurrency limit),
 * `unavailable` (no room), `deadline_exceeded`, `internal`.
 */
export async function createSandbox(
  deps: CreateDeps,
  team: TeamRecord,
  asked: NewSandboxRequest,
  clientSignal: AbortSignal,
  repeatable?: Repeatable,
): Promise<SandboxRecord> {
  const { options } = asked;
  requireSecure(deps.requireSecure, options.secure);
  checkTimeout(deps.limitsOf, team, options.timeoutSeconds);
  checkSandboxOptions(deps.features, options);
  const { volumeMounts } = asked;
  if (options.network) await checkRuleSecrets(deps, team, options.network, 'network.');
  const { template, build, alias } = await step('template', () =>
    resolveAwaitedBuild(deps, team, asked.template, clientSignal),
  );
  checkSize(deps.limitsOf, team, build);
  const driver = await driverOf(deps, build);
  const inherited = inheritedMounts(build.config.volumeMounts ?? [], volumeMounts);
  const autoPauseDurability = durabilityOf(deps, team, asked, inherited);
  const home = build.config.memoryNodeId ?? (await homeOfVolumes(deps, team, volumeMounts, inherited));
  const { cpuCount, memoryMiB } = build;
  const demands = demandsOf({ teamId: team.teamId, metadata: options.metadata });
  const full = new Set<string>();
  for (;;) {
    const placed = await step('place', () =>
      placeWith(deps, build, { cpuCount, memoryMiB, driver, home, full, demands }),
    );
    const chosen = {
      asked: { ...asked, options: { ...options, autoPauseDurability } },
      template,
      build,
      alias,
      driver,
      inherited,
      placed,
      repeatable,
    };
    try {
      return await createOn(deps, team, chosen, clientSignal);
    } catch (error) {
      const isFull = error instanceof AtollError && error.detail === nodeFull;
      if (!isFull || full.has(placed.nodeId) || deps.nodes.list().length === 1) {
        deps.createCounts.countFailed(placed.nodeId, error);
        throw error;
      }
      full.add(placed.nodeId);
    }
  }
}

/** What an automatic pause survives, now that all volumes are known. Errors: those of `requireDurable`. */
function durabilityOf(
  { durablePauses }: Pick<CreateDeps, 'durablePauses'>,
  team: TeamRecord,
  { options, volumeMounts: asked, isDurabilityUsual }: NewSandboxRequest,
  inherited: readonly MountedVolume[],
): Durability {
  const { autoPauseDurability } = options;
  const volumeMounts = [...asked, ...inherited];
  if (isDurabilityUsual) return usualDurability(durablePauses, team, volumeMounts);
  requireDurable(durablePauses, autoPauseDurability, { volumeMounts, member: 'autoPauseDurability' });
  return autoPauseDurability;
}

type Chosen = {
  asked: NewSandboxRequest;
  template: { templateId: string };
  build: BuildRecord;
  alias: string | null;
  driver: DriverName | undefined;
  inherited: MountedVolume[];
  placed: Placed;
  repeatable: Repeatable | undefined;
};

/** Creates it on the chosen machine. */
async function createOn(
  deps: CreateDeps,
  team: TeamRecord,
  { asked: { options, volumeMounts: mounts }, template, build, alias, driver, inherited, placed, repeatable }: Chosen,
  clientSignal: AbortSignal,
): Promise<SandboxRecord> {
  const { nodeId, protocol } = placed;
  const volumeMounts = await resolveVolumeMounts(deps, team, mounts, { nodeId, inherited });
  if (options.autoPause && options.autoPauseMemory) {
    await requireMemoryOfDriver(protocol, driver, 'autoPause', 'autoPauseMemory: false keeps the files');
  }
  const sandbox = newRecord(deps, team, options, { nodeId, build, alias, volumeMounts });
  const image = imageOf(template.templateId, build, driver);

  const deadline = AbortSignal.timeout(createDeadlineMs);
  try {
    const signal = AbortSignal.any([clientSignal, deadline]);
    const context = { deps, team, node: protocol, image, sandbox, ...(repeatable && { repeatable }) };
    return await createSandboxWorkflow(context, signal);
  } catch (error) {
    throw explainFailedStart(error, clientSignal, deadline);
  }
}

/** Anybody who knows the ID of a sandbox without a token can use it. */
export function requireSecure(requireSecure: boolean, secure: boolean): void {
  if (requireSecure && !secure)
    throw new AtollError(
      'invalid',
      'secure: must be true: this installation refuses sandboxes that can be used without a token',
    );
}

/** A public template of another team, or one from before a limit was lowered, may be larger than the team may have. */
function checkSize(limitsOf: LimitsOf, team: TeamRecord, { cpuCount, memoryMiB, diskMiB }: BuildRecord): void {
  const limits = limitsOf(team);
  const tooMuch = (what: string, size: number, limit: number, unit: string) => {
    if (size > limit)
      throw new AtollError(
        'invalid',
        `templateID: sandboxes of this template have ${size} ${unit} of ${what}, and the team may use up to ${limit}`,
      );
  };
  tooMuch('CPU', cpuCount, limits.cpuCount, 'cores');
  tooMuch('memory', memoryMiB, limits.memoryMiB, 'MiB');
  tooMuch('disk', diskMiB, limits.diskMiB, 'MiB');
}

function newRecord(
  { clock, seed }: { clock: Clock; seed: Uint8Array },
  team: TeamRecord,
  options: SandboxOptions,
  chosen: { nodeId: string; build: BuildRecord; alias: string | null; volumeMounts: MountedVolume[] },
): SandboxRecord {
  const { build, nodeId, alias, volumeMounts } = chosen;
  const nowUs = clock();
  return {
    ...options,
    network: options.network && encryptNetwork(seed, team.teamId, options.network),
    sandboxId: newSandboxId(),
    executionId: newUuid(),
    teamId: team.teamId,
    nodeId,
    state: 'starting',
    templateId: build.templateId,
    buildId: build.buildId,
    alias,
    agentVersion: build.agentVersion ?? agentVersion,
    cpuCount: build.cpuCount,
    memoryMiB: build.memoryMiB,
    diskMiB: build.diskMiB,
    createdAtUs: nowUs,
    startedAtUs: nowUs,
    endAtUs: nowUs,
    volumeMounts,
    kept: null,
    agentUnresponsive: false,
    durability: null,
    nextExecutionId: null,
    nextNodeId: null,
    replicaId: null,
  };
}

function imageOf(templateId: string, build: BuildRecord, driver: DriverName | undefined): TemplateImage {
  const { volumeMounts: _, memoryNodeId: __, ...config } = build.config;
  return {
    templateId,
    buildId: build.buildId,
    layers: build.layers,
    ...config,
    ...(driver !== undefined && { driver }),
  };
}

/** The meaning of a failed start for the caller; the node's own words go to the log. */
export function explainFailedStart(error: unknown, client: AbortSignal, deadline: AbortSignal): unknown {
  if (client.aborted) return new AtollError('canceled', 'The request was given up by the client', { cause: error });
  if (deadline.aborted) {
    return new AtollError('deadline_exceeded', 'The sandbox did not start in time; nothing of it is left', {
      detail: 'sandbox_placement_timeout',
      cause: error,
    });
  }
  if (!(error instanceof AtollError) || error.detail === restoreFailed) return failedToStart(error);
  // The error itself says that the node or the database went away, or what in the template fails: it is not about room.
  if (isServerFailure(error) || isPartLost(error) || error.mayHaveChanged || error.detail === noCompatibleNode)
    return error;
  if (error.code === 'unavailable' || error.code === 'no_space') {
    const figures = saysFull(error) ? ` (${error.message})` : '';
    return new AtollError('unavailable', `There is no room for another sandbox now; nothing was changed${figures}`, {
      detail: error.detail ?? nodeFull,
      fields: error.fields,
      cause: error,
    });
  }
  if (error.detail === volumeChanged)
    return new AtollError('conflict', `The sandbox can't begin with the memory of its snapshot: ${error.message}`, {
      detail: volumeChanged,
      fields: error.fields,
      cause: error,
    });
  if (error.code === 'not_found' || error.code === 'internal') return failedToStart(error);
  return error;
}

function failedToStart(cause: unknown): AtollError {
  return new AtollError('internal', 'The sandbox could not be started', { detail: 'sandbox_create_failed', cause });
}
