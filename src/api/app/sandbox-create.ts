import { AtollError } from '../../base/error.ts';
import { newSandboxId, newUuid } from '../../base/id.ts';
import { agentVersion } from '../../protocol/agent.ts';
import { defaultTimeoutSeconds } from '../../protocol/api/sandbox.ts';
import type { NewSandbox } from '../../protocol/api/sandbox.ts';
import type { DriverName, TemplateImage } from '../../protocol/node.ts';
import { placeSandbox } from '../placement/place.ts';
import type { MountedVolume, SandboxRecord } from '../store/sandbox-row.ts';
import type { BuildRecord } from '../store/template-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { createSandboxWorkflow } from '../workflows/create-sandbox.ts';
import { resolveAwaitedBuild } from './awaited-build.ts';
import { limitsOf } from './context.ts';
import type { App } from './context.ts';
import { checkRuleSecrets } from './egress-secrets.ts';
import { requireMemoryOfDriver } from './memory-ability.ts';
import { sealNetwork } from './network-secrets.ts';
import { checkSandboxOptions } from './sandbox-options.ts';
import { restoreFailed } from './sandbox-resume.ts';
import { checkTimeout } from './sandbox-timeout.ts';
import { driverOf } from './template-driver.ts';
import { resolveVolumeMounts } from './volume-mounts.ts';

/** A client waits 60 s by default: what takes longer is undone, so that no sandbox runs that nobody knows of. */
const createDeadlineMs = 50_000;

/**
 * Creates a sandbox and answers when its agent accepts requests. A refused request leaves nothing behind.
 * Errors: `invalid`, `forbidden` (a feature that is not offered), `not_found` (template), `rate_limited` (concurrency limit),
 * `unavailable` (no room), `deadline_exceeded`, `internal`.
 */
export async function createSandbox(
  app: App,
  team: TeamRecord,
  version: 'v1' | 'v2',
  body: NewSandbox,
  clientSignal: AbortSignal,
): Promise<SandboxRecord> {
  const secure = version === 'v2' || body.secure === true;
  requireSecure(app, secure);
  const timeoutSeconds = body.timeout ?? defaultTimeoutSeconds[version];
  checkTimeout(app, team, timeoutSeconds);
  checkSandboxOptions(app, body, secure);
  if (body.network) await checkRuleSecrets(app, team, body.network, 'network.');
  const { template, build, alias } = await resolveAwaitedBuild(app, team, body.templateID, clientSignal);
  checkSize(app, team, build);
  const { nodeId, protocol } = await placeSandbox(app.nodes, app.store.db);
  const volumeMounts = await resolveVolumeMounts(app, team, body.volumeMounts ?? [], { nodeId, inherited: build.config.volumeMounts ?? [] });
  const driver = await driverOf(app, build);
  if (body.autoPause === true && body.autoPauseMemory !== false) {
    await requireMemoryOfDriver(protocol, driver, 'autoPause', 'autoPauseMemory: false keeps the files');
  }
  const sandbox = newRecord(app, team, body, { secure, timeoutSeconds, nodeId, build, alias, volumeMounts });
  const image = imageOf(template.templateId, build, driver);

  const deadline = AbortSignal.timeout(createDeadlineMs);
  try {
    const signal = AbortSignal.any([clientSignal, deadline]);
    const running = await createSandboxWorkflow({ app, team, node: protocol, image, sandbox }, signal);
    app.createCounts.note(nodeId, 'successes');
    return running;
  } catch (error) {
    const explained = explainFailedStart(error, clientSignal, deadline);
    if (!(explained instanceof AtollError) || explained.status >= 500) app.createCounts.note(nodeId, 'fails');
    throw explained;
  }
}

/** Whoever knows the ID of a sandbox without a token can use it. */
export function requireSecure(app: App, secure: boolean): void {
  if (app.requireSecure && !secure) throw new AtollError('invalid', 'secure: must be true: this installation refuses sandboxes that can be used without a token');
}

/** A public template of another team, or one from before a limit was lowered, may be larger than the team may have. */
function checkSize(app: App, team: TeamRecord, { cpuCount, memoryMiB, diskMiB }: BuildRecord): void {
  const limits = limitsOf(app, team);
  const tooMuch = (what: string, size: number, limit: number, unit: string) => {
    if (size > limit) throw new AtollError('invalid', `templateID: sandboxes of this template have ${size} ${unit} of ${what}, and the team may use up to ${limit}`);
  };
  tooMuch('CPU', cpuCount, limits.cpuCount, 'cores');
  tooMuch('memory', memoryMiB, limits.memoryMiB, 'MiB');
  tooMuch('disk', diskMiB, limits.diskMiB, 'MiB');
}

function newRecord(
  app: App,
  team: TeamRecord,
  body: NewSandbox,
  chosen: { secure: boolean; timeoutSeconds: number; nodeId: string; build: BuildRecord; alias: string | null; volumeMounts: MountedVolume[] },
): SandboxRecord {
  const { build } = chosen;
  const nowUs = app.clock();
  return {
    sandboxId: newSandboxId(),
    executionId: newUuid(),
    teamId: team.teamId,
    nodeId: chosen.nodeId,
    state: 'starting',
    templateId: build.templateId,
    buildId: build.buildId,
    alias: chosen.alias,
    agentVersion: build.agentVersion ?? agentVersion,
    cpuCount: build.cpuCount,
    memoryMiB: build.memoryMiB,
    diskMiB: build.diskMiB,
    createdAtUs: nowUs,
    startedAtUs: nowUs,
    endAtUs: nowUs,
    timeoutSeconds: chosen.timeoutSeconds,
    secure: chosen.secure,
    autoPause: body.autoPause ?? false,
    autoPauseMemory: body.autoPauseMemory ?? true,
    autoResume: body.autoResume?.enabled ?? false,
    allowInternetAccess: body.allow_internet_access ?? null,
    network: body.network ? sealNetwork(app, team.teamId, body.network) : null,
    metadata: body.metadata ?? null,
    envVars: body.envVars ?? {},
    mcp: body.mcp ?? null,
    iam: body.iam ?? null,
    volumeMounts: chosen.volumeMounts,
    kept: null,
    nextExecutionId: null,
  };
}

function imageOf(templateId: string, build: BuildRecord, driver: DriverName | undefined): TemplateImage {
  const { volumeMounts: _, ...config } = build.config;
  return { templateId, buildId: build.buildId, layers: build.layers, ...config, ...(driver !== undefined && { driver }) };
}

/** Says what a failed start means to the caller; the node's own words go to the log. */
export function explainFailedStart(error: unknown, client: AbortSignal, deadline: AbortSignal): unknown {
  if (client.aborted) return new AtollError('canceled', 'The request was given up by the client', { cause: error });
  if (deadline.aborted) {
    return new AtollError('deadline_exceeded', 'The sandbox did not start in time; nothing of it is left', {
      detail: 'sandbox_placement_timeout',
      cause: error,
    });
  }
  if (!(error instanceof AtollError) || error.detail === restoreFailed) return failedToStart(error);
  if (error.code === 'unavailable' || error.code === 'no_space') {
    const figures = error.detail === 'disk_reserve' ? ` (${error.message})` : '';
    return new AtollError('unavailable', `There is no room for another sandbox now; nothing was changed${figures}`, {
      detail: error.detail ?? 'sandbox_capacity_unavailable',
      fields: error.fields,
      cause: error,
    });
  }
  if (error.code === 'not_found' || error.code === 'internal') return failedToStart(error);
  return error;
}

function failedToStart(cause: unknown): AtollError {
  return new AtollError('internal', 'The sandbox could not be started', { detail: 'sandbox_create_failed', cause });
}
