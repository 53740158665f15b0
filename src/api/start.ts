import { messageOf } from '../base/error.ts';
import type { Log } from '../base/log.ts';
import type { Family } from '../base/meter.ts';
import type { Span } from '../base/trace.ts';
import type { BuildProtocol, BuildsAllowed } from '../protocol/build.ts';
import { sandboxLogDays } from '../protocol/logs.ts';
import type { DirectoryProtocol } from '../protocol/directory.ts';
import type { NodeProtocol } from '../protocol/node.ts';
import { reconcileBuilds } from './app/build-follow.ts';
import { BusyExecutions } from './app/busy.ts';
import { noBuilder } from './app/no-builder.ts';
import { AuditBacklog, auditBacklogIntervalMs } from './app/audit-backlog.ts';
import { auditPruneIntervalMs, reconcileAudit } from './app/audit.ts';
import { eventsPruneIntervalMs, reconcileEvents } from './app/events.ts';
import { steadyClock } from './app/clock.ts';
import type { SteadyClock } from './app/clock.ts';
import type { App, Features } from './app/context.ts';
import { CredentialCache } from './app/credential-cache.ts';
import { SandboxDirectory } from './app/directory.ts';
import { Health } from './app/health.ts';
import { defaultLimits } from './app/limits.ts';
import { createMeasures } from './app/measures.ts';
import { RateLimiter } from './app/rate-limit.ts';
import { directoryFor } from './app/edge-protocol.ts';
import { StartCounts } from './app/start-counts.ts';
import type { TemplateDrivers } from './app/template-driver.ts';
import { tokensOf } from './app/tokens.ts';
import { Uploads } from './app/uploads.ts';
import { routes } from './http/routes.ts';
import { serveApi } from './http/server.ts';
import { CreateCounts } from './placement/create-counts.ts';
import { singleNode } from './placement/nodes.ts';
import { adoptionIntervalMs, reconcileNodes } from './reconcilers/adoption.ts';
import { reconcileClock } from './reconcilers/clock.ts';
import { followExits } from './reconcilers/exits.ts';
import { autoPauses, expiryIntervalMs, reconcileExpiry } from './reconcilers/expiry.ts';
import { leftoversIntervalMs, reconcileLeftovers } from './reconcilers/leftovers.ts';
import { buildsIntervalMs, layersIntervalMs, reconcileLayers } from './reconcilers/layers.ts';
import { reconcileSnapshots, snapshotsIntervalMs } from './reconcilers/snapshots.ts';
import { metricsPruneIntervalMs, pruneMetrics, teamMetricsIntervalMs, teamWatch } from './reconcilers/team-metrics.ts';
import type { MetricsRetention } from './reconcilers/team-metrics.ts';
import { reconcileVolumes, volumesIntervalMs } from './reconcilers/volumes.ts';
import { startLoop } from './reconcilers/loop.ts';
import type { Loop } from './reconcilers/loop.ts';
import type { Store } from './store/database.ts';
import type { TeamLimits } from './store/team.ts';
import { WebhookDispatcher } from './webhooks/dispatcher.ts';
import { defaultWebhookSettings } from './webhooks/settings.ts';
import type { WebhookSettings } from './webhooks/settings.ts';

export type ApiOptions = {
  /** Path of the unix socket on which the REST API listens. */
  socketPath: string;
  /** Who may connect to it; default: this user alone. */
  socketMode?: number;
  /** From `openStore`; closed by whoever opened it, after `stop`. */
  store: Store;
  node: NodeProtocol;
  /** Absent: templates can't be built here. */
  builder?: BuildProtocol;
  /** Where uploaded files of templates are kept; the builder reads them there. */
  filesDir?: string;
  /** What uploads leave free on its file system. Default: nothing. */
  diskReserveBytes?: number;
  /** At least 32 secret bytes of this installation, the same at every start: the sandboxes' tokens come from them. */
  seed: Uint8Array;
  log: Log;
  /** The operator's token for `X-Admin-Token`; without it the operator's routes let nobody in. */
  adminToken?: string;
  /** Reads the operator's metrics; without it, the operator's token alone does. */
  metricsToken?: string;
  /** What differs from `defaultLimits`. */
  limits?: Partial<TeamLimits>;
  /** Domain of the installation. Default `localhost`. */
  domain?: string;
  /** For how long a token for a volume's content is good. Default: a day. */
  volumeTokenSeconds?: number;
  /** What the node can do; everything that is not named is refused. */
  features?: Partial<Features>;
  /** How long numbers of the past are kept. Default: two weeks of teams, a day of sandboxes that are gone. */
  retention?: MetricsRetention;
  /** Refuse sandboxes that would have no token of their own. Default: as v1 has it, where one has to ask for a token. */
  requireSecure?: boolean;
  /** What differs from `defaultWebhookSettings`. */
  webhooks?: Partial<WebhookSettings>;
  /** Which templates are isolated otherwise than by the node's default. */
  templateDrivers?: TemplateDrivers;
  /** Who may build templates. Default: every team. */
  buildsAllowed?: BuildsAllowed;
  /** Check every answer against its documented schema. For tests. */
  checkAnswers?: boolean;
  /** Another than the machine's, for tests. */
  clock?: SteadyClock;
  /** Say in a `Server-Timing` header how long each step of a request took. */
  trace?: boolean;
  /** Gets the spans of each request, and of those that clients do not trace themselves the given share. */
  spans?: { record(spans: Span[]): void; ratio: number };
  /** Of the source that runs; empty where nobody knows. */
  commit?: string;
  /** What other parts of the process have counted, for the operator's metrics. */
  families?: () => Family[];
};

export type Api = {
  /** For provisioning from the command line, in this process. */
  app: App;
  /** Where each sandbox is. */
  directory: SandboxDirectory;
  /** What the edge asks. */
  forEdge: Omit<DirectoryProtocol, 'report'>;
  /** True once the sandboxes of the last run were adopted. */
  isReady(): boolean;
  /** Stops taking requests and reconciling. Running sandboxes stay. */
  stop(): Promise<void>;
};

const defaultRetention: MetricsRetention = { teamDays: 14, pastSandboxHours: sandboxLogDays * 24 };
const firstAdoptionRetryMs = 500;
const ownerOnly = 0o600;
const flushUsesIntervalMs = 10_000;
const defaultVolumeTokenSeconds = 24 * 3600;

/** Starts the API. Answers when it listens and the node's sandboxes were adopted or, when that failed, is being retried. */
export async function startApi(options: ApiOptions): Promise<Api> {
  const stopping = new AbortController();
  const app = { ...(await createApp(options)), stopping: stopping.signal };
  const ready = { adopted: false };
  await using started = new AsyncDisposableStack();
  started.defer(() => app.credentials.flushUses());
  const exits = followExits(app, options.node);
  started.defer(() => exits.stop());
  for (const loop of await startReconcilers(app, ready, options.retention ?? defaultRetention)) started.defer(() => loop.stop());
  const dispatcher = await WebhookDispatcher.start(app);
  started.defer(() => dispatcher.stop());
  const isReady = () => ready.adopted;
  const { socketPath, socketMode = ownerOnly, checkAnswers = false } = options;
  const server = await serveApi({ app, routes, socketPath, socketMode, isReady, checkAnswers, trace: options.trace ?? false, ...(options.spans && { spans: options.spans }) });
  started.defer(() => server.stop());

  const disposal = started.move();
  return {
    app,
    directory: app.directory,
    forEdge: directoryFor(app),
    isReady,
    stop: async () => {
      stopping.abort();
      await disposal.disposeAsync();
      await Promise.all(app.followedBuilds.values());
    },
  };
}

/** The rules' context alone, without server and reconcilers. */
async function createApp(options: Omit<ApiOptions, 'socketPath' | 'checkAnswers' | 'trace' | 'spans'>): Promise<App> {
  const { nodeId } = await options.node.info();
  const { clock, ...clockSteps } = options.clock ?? steadyClock();
  return {
    store: options.store,
    nodes: singleNode(nodeId, options.node),
    directory: new SandboxDirectory(sandbox => tokensOf(options.seed, sandbox)),
    credentials: new CredentialCache(options.store, clock),
    seed: options.seed,
    adminToken: options.adminToken ?? null,
    metricsToken: options.metricsToken ?? null,
    limits: { ...defaultLimits, ...options.limits },
    features: { egressAddresses: false, egressDomains: false, egressProxy: false, headerRules: false, volumes: false, iam: false, ...options.features },
    webhooks: { ...defaultWebhookSettings, ...options.webhooks },
    requireSecure: options.requireSecure ?? false,
    templateDrivers: options.templateDrivers ?? new Map(),
    buildsAllowed: options.buildsAllowed ?? 'on',
    clock,
    clockSteps,
    startedAtUs: clock(),
    createCounts: new CreateCounts(),
    startCounts: new StartCounts(),
    measures: createMeasures(),
    commit: options.commit ?? '',
    families: options.families ?? (() => []),
    rateLimiter: new RateLimiter(),
    uploads: new Uploads(),
    health: new Health(options.store),
    auditBacklog: new AuditBacklog(options.log),
    log: options.log,
    busy: new BusyExecutions(),
    resuming: new Map(),
    builder: options.builder ?? noBuilder,
    domain: options.domain ?? 'localhost',
    volumeTokenSeconds: options.volumeTokenSeconds ?? defaultVolumeTokenSeconds,
    filesDir: options.filesDir ?? '/nonexistent',
    diskReserveBytes: options.diskReserveBytes ?? 0,
    followedBuilds: new Map(),
    awaitedBuilds: new Map(),
    stopping: new AbortController().signal,
  };
}

/** Takes over what the last run left, then keeps the standing truths. */
async function startReconcilers(app: App, ready: { adopted: boolean }, retention: MetricsRetention): Promise<Loop[]> {
  const { log } = app;
  const adopt = async () => {
    await reconcileNodes(app, !ready.adopted);
    ready.adopted = true;
  };
  await reconcileLeftovers(app).catch(error => log.warn('leftovers are tried again', { error: messageOf(error) }));
  await adopt().catch(error => log.warn('adoption is tried again', { error: messageOf(error) }));
  const pauses = autoPauses(app);
  const onRun = (name: string, outcome: 'ok' | 'failed') => app.measures.reconciled(name, outcome);
  return [
    startLoop({ name: 'adoption', intervalMs: () => (ready.adopted ? adoptionIntervalMs : firstAdoptionRetryMs), run: adopt, log, onRun }),
    startLoop({ name: 'leftovers', intervalMs: () => leftoversIntervalMs, run: () => reconcileLeftovers(app), log, onRun }),
    startLoop({ name: 'builds', intervalMs: () => buildsIntervalMs, run: () => reconcileBuilds(app), log, onRun }),
    startLoop({ name: 'layers', intervalMs: () => layersIntervalMs, run: () => reconcileLayers(app), log, onRun }),
    startLoop({ name: 'snapshots', intervalMs: () => snapshotsIntervalMs, run: () => reconcileSnapshots(app), log, onRun }),
    startLoop({ name: 'volumes', intervalMs: () => volumesIntervalMs, run: () => reconcileVolumes(app), log, onRun }),
    startLoop({ name: 'expiry', intervalMs: () => expiryIntervalMs, run: () => reconcileClock(app).then(() => reconcileExpiry(app)), log, onRun }),
    thenSettled(startLoop({ name: 'auto-pause', intervalMs: () => expiryIntervalMs, run: pauses.round, log, onRun }), pauses.settled),
    startLoop({ name: 'events', intervalMs: () => eventsPruneIntervalMs, run: () => reconcileEvents(app), log, onRun }),
    startLoop({ name: 'audit-backlog', intervalMs: () => auditBacklogIntervalMs, run: () => app.auditBacklog.flush(app.store.db), log, onRun }),
    startLoop({ name: 'audit', intervalMs: () => auditPruneIntervalMs, run: () => reconcileAudit(app), log, onRun }),
    startLoop({ name: 'team-metrics', intervalMs: () => teamMetricsIntervalMs, run: teamWatch(app), log, onRun }),
    startLoop({ name: 'metrics-retention', intervalMs: () => metricsPruneIntervalMs, run: () => pruneMetrics(app, retention), log, onRun }),
    startLoop({ name: 'credential-uses', intervalMs: () => flushUsesIntervalMs, run: () => app.credentials.flushUses(), log, onRun }),
  ];
}

/** A loop that has stopped once what its rounds began has settled too. */
function thenSettled(loop: Loop, settled: () => Promise<void>): Loop {
  return { wake: loop.wake, stop: () => loop.stop().then(settled) };
}
