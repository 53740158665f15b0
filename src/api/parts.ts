import type { Log } from '../base/telemetry/log.ts';
import type { Metric } from '../base/telemetry/meter.ts';
import { type Clock, type ClockSteps, steadyClock } from '../base/clock.ts';
import { type InTurn, turnsOfReads } from '../base/concurrency/long-reads.ts';
import { SingleFlight } from '../base/concurrency/single-flight.ts';
import type { ShownSettings } from '../protocol/api/installation.ts';
import type { HostFinding } from '../protocol/doctor.ts';
import type { BuildProtocol, BuildsAllowed } from '../protocol/build.ts';
import type { CordonedAddresses, ReviewPod } from '../protocol/cluster.ts';
import { ClusterStore } from './blob/rules/cluster-store.ts';
import { bringLayer } from './blob/rules/layers.ts';
import { DurablePauses } from './blob/rules/pauses.ts';
import { StoredLogs } from './blob/rules/logs.ts';
import { DurableSnapshots } from './blob/rules/snapshots.ts';
import { SharedUploads } from './blob/rules/uploads.ts';
import { type Authority, controlIdentity, openAuthority } from './cluster/rules/authority.ts';
import { clusterBuilder } from './cluster/rules/builder.ts';
import { Machines } from './cluster/rules/machines.ts';
import { AwaitedBuilds } from './build/rules/awaited.ts';
import { noBuilder } from './build/rules/no-builder.ts';
import { Uploads } from './build/rules/uploads.ts';
import { CredentialCache } from './credential/rules/cache.ts';
import { RateLimiter } from './credential/rules/rate-limit.ts';
import { kindOf } from './database/db.ts';
import type { Db } from './database/db.ts';
import { Health } from './database/health.ts';
import { AuditBacklog } from './event/rules/audit-backlog.ts';
import { createIdentity, type Identity } from './identity/rules/identity.ts';
import { OpenStreams } from './http/open-streams.ts';
import { type Measures, createMeasures } from './metrics/measures.ts';
import { NodeHistory } from './metrics/node-history.ts';
import { ChangeWatch } from './operator/rules/stuck.ts';
import { type OidcProvider, oidcProvider } from './session/rules/oidc-provider.ts';
import { type Passwords, createPasswords } from './session/rules/passwords.ts';
import { StartCounts } from './metrics/start-counts.ts';
import type { ApiOptions } from './options.ts';
import { CreateCounts } from './placement/create-counts.ts';
import { type Nodes, singleNode } from './placement/nodes.ts';
import { VolumeUploads } from './volume/rules/uploads.ts';
import { VolumeCopies } from './volume/rules/volume-copies.ts';
import { clockOf, databaseClock } from './replica/rules/database-clock.ts';
import { type Replica, startReplica } from './replica/rules/replica.ts';
import { SandboxDirectory } from './sandbox/directory/directory.ts';
import { type Features, noFeatures } from './sandbox/features.ts';
import { BusyExecutions } from './sandbox/rules/busy.ts';
import { tokensOf } from './sandbox/rules/tokens.ts';
import type { Resuming } from './sandbox/rules/resuming.ts';
import { type LimitsOf, limitsFrom } from './team/rules/limits.ts';
import type { TemplateDrivers } from './template/rules/driver.ts';
import { type WebhookSettings, defaultWebhookSettings } from './webhook/delivery/settings.ts';

/**
 * Everything that operations of the API depend on, made once at the start. Only the code that assembles the API takes
 * it whole: each function names the members that it uses.
 */
export type ApiParts = {
  readonly db: Db;
  readonly nodes: Nodes;
  /** Signs for machines that join; null where none can. */
  readonly authority: Authority | null;
  /** The machines that have joined; null where none can. */
  readonly machines: Machines | null;
  readonly isolationSeconds: number;
  /** Says which pod the token of a joining machine belongs to; null where no pods join. */
  readonly reviewPod: ReviewPod | null;
  readonly cordoned: CordonedAddresses | null;
  /** What the cluster keeps outside of its machines; null where it keeps nothing there. */
  readonly store: ClusterStore | null;
  /** Null where nothing is kept outside of its machine. */
  readonly durablePauses: DurablePauses | null;
  /** The memory that sandboxes start with, in the store; null where it stays on its machine. */
  readonly durableSnapshots: DurableSnapshots | null;
  /** Logs of ended sandboxes, in the store; null where they stay on their machines. */
  readonly storedLogs: StoredLogs | null;
  /** Volumes between the machines of a cluster; null: there is one machine. */
  readonly volumeCopies: VolumeCopies | null;
  readonly directory: SandboxDirectory;
  readonly credentials: CredentialCache;
  /** Secret of the installation from which the sandboxes' tokens are derived. */
  readonly seed: Uint8Array;
  /** The operator's token, or null where there is none: then the operator's routes admit nobody. */
  readonly adminToken: string | null;
  /** The token that reads the operator's metrics, or null where there is none. */
  readonly metricsToken: string | null;
  readonly limitsOf: LimitsOf;
  readonly features: Features;
  readonly identity: Identity;
  readonly webhooks: WebhookSettings;
  /** Sandboxes without a token of their own are refused. */
  readonly requireSecure: boolean;
  readonly templateDrivers: TemplateDrivers;
  /** Who may build templates. */
  readonly buildsAllowed: BuildsAllowed;
  readonly clock: Clock;
  /** How far the machine's clock is from `clock`. */
  readonly clockSteps: ClockSteps;
  readonly startedAtUs: number;
  readonly createCounts: CreateCounts;
  readonly startCounts: StartCounts;
  readonly measures: Measures;
  /** The nodes' use during the last day. */
  readonly nodeHistory: NodeHistory;
  /** Commit of the running source; empty where it is unknown. */
  readonly commit: string;
  /** Since when sandboxes have been in transition. */
  readonly changes: ChangeWatch;
  /** Examines the machine; null where nothing can do that. */
  readonly examine: (() => Promise<HostFinding[]>) | null;
  readonly shownSettings: ShownSettings;
  /** Metrics of other parts of the process. */
  readonly metrics: () => Metric[];
  /** Counts requests of teams. */
  readonly rateLimiter: RateLimiter;
  /** Turns of teams that read many rows. */
  readonly readsInTurn: InTurn;
  /** Counts requests with wrong credentials, by the client's address. */
  readonly wrongCredentials: RateLimiter;
  /**
   * Counts attempts to sign in, by client and by account: strangers choose both, and must not push teams out of its
   * memory.
   */
  readonly signInAttempts: RateLimiter;
  readonly passwords: Passwords;
  /** The provider at which people can sign in too; null where there is none. */
  readonly oidc: OidcProvider | null;
  readonly uploads: Uploads;
  readonly volumeUploads: VolumeUploads;
  /** Shares uploads within a cluster; null: they are on this machine alone. */
  readonly sharedUploads: SharedUploads | null;
  /** Counts the streams that teams follow. */
  readonly streams: OpenStreams;
  readonly health: Health;
  readonly auditBacklog: AuditBacklog;
  /** Resolves when everything committed survives a loss of power. */
  readonly flushed: () => Promise<void>;
  readonly log: Log;
  /** Executions on which a workflow of this process works now: the reconcilers leave them alone. */
  readonly busy: BusyExecutions;
  /** This process among those that share the database. */
  readonly replica: Replica;
  /** Brings `clock` to the time of all who share the database; does nothing where it is the machine's own. */
  readonly syncClock: () => Promise<void>;
  /** Resumes under way in this process, by sandbox ID: later callers wait for the same one. */
  readonly resuming: Resuming;
  readonly builder: BuildProtocol;
  /** Domain of the installation: clients of volumes reach its API as `api.<domain>`. */
  readonly domain: string;
  /** How long a token for a volume's content is valid, seconds. */
  readonly volumeTokenSeconds: number;
  /** Directory of the uploaded files of templates: `<team>/<hash>`. */
  readonly filesDir: string;
  /** What uploads leave free on the file system of `filesDir`. */
  readonly diskReserveBytes: number;
  /** Builds whose log and outcome this process takes over, by ID. */
  readonly followedBuilds: SingleFlight<string, void>;
  readonly awaitedBuilds: AwaitedBuilds;
  /** Aborted when this process ends: whatever waits for something outside then gives up. */
  readonly stopping: AbortSignal;
};

/** The one node of this machine, or the machines of a cluster. */
async function nodesOf({
  node,
  cluster,
  store,
  seed,
  log,
}: ApiOptions): Promise<Pick<ApiParts, 'nodes' | 'authority' | 'machines'>> {
  if (node) return { nodes: singleNode((await node.info()).nodeId, node), authority: null, machines: null };
  if (!cluster) throw new Error('invariant broken: an API has neither a node nor a cluster');
  const authority = await openAuthority(store.db, seed);
  const machines = new Machines(cluster.links, controlIdentity(authority, 'api'), log);
  return { nodes: machines, authority, machines };
}

/** The store of a cluster, from which its machines get layers. */
async function storeOf(
  { cluster, store: { db }, log }: ApiOptions,
  { clock, replica, machines }: Pick<ApiParts, 'clock' | 'replica' | 'machines'>,
): Promise<ClusterStore | null> {
  if (!cluster?.store || !machines) return null;
  const { links } = cluster;
  const store = await ClusterStore.open({ ...cluster.store, db, clock, links, replicaId: replica.replicaId, log });
  machines.layers.fromStore = (digest, machine) => bringLayer({ db, store }, digest, machine);
  return store;
}

type Shared = 'store' | 'durablePauses' | 'durableSnapshots' | 'storedLogs' | 'sharedUploads' | 'builder';

/** What the machines of a cluster share, with or without a store. */
function sharedWith(
  { cluster, builder, seed, log, store: { db } }: ApiOptions,
  machines: Machines | null,
  store: ClusterStore | null,
  clock: Clock,
): Pick<ApiParts, Shared> {
  const alone = { store: null, durablePauses: null, durableSnapshots: null, storedLogs: null };
  if (!machines || !cluster) return { ...alone, sharedUploads: null, builder: builder ?? noBuilder };
  const sharedUploads = new SharedUploads({ db, clock, log, machines, links: cluster.links, store });
  const onMachines = {
    sharedUploads,
    builder: builder ?? clusterBuilder({ machines, db, clock, seed, log, uploads: sharedUploads }),
  };
  if (!store) return { ...alone, ...onMachines };
  const durableSnapshots = new DurableSnapshots({ db, clock, store, machines, seed });
  machines.memories = durableSnapshots;
  const durablePauses = new DurablePauses({ db, clock, store, machines, seed });
  return {
    store,
    durablePauses,
    durableSnapshots,
    storedLogs: new StoredLogs({ db, clock, store, seed }),
    ...onMachines,
  };
}

/** Lists under way at a time where PostgreSQL reads the rows. */
const readsOnPostgresMax = 16;
const defaultVolumeTokenSeconds = 24 * 3600;

/** Makes the parts of an API. `stopping` is aborted when the API ends. */
export async function createParts(options: ApiOptions, stopping: AbortSignal): Promise<ApiParts> {
  const { db } = options.store;
  const domain = options.domain ?? 'localhost';
  const sharedClock = options.clock || options.store.kind === 'sqlite' ? null : await databaseClock(clockOf(db));
  const { clock, ...clockSteps } = sharedClock ?? options.clock ?? steadyClock();
  const replica = await startReplica({ db, clock }, { place: options.socketPath, ...options.replica });
  const { authority, machines, nodes } = await nodesOf(options);
  const shared = sharedWith(options, machines, await storeOf(options, { clock, replica, machines }), clock);
  return {
    db,
    nodes,
    authority,
    machines,
    ...shared,
    volumeCopies: machines
      ? new VolumeCopies({ ...options, ...shared, db, clock, machines, busy: { replicaId: replica.replicaId } })
      : null,
    isolationSeconds: options.cluster?.isolationSeconds ?? 0,
    reviewPod: options.cluster?.reviewPod ?? null,
    cordoned: options.cluster?.cordoned ?? null,
    directory: new SandboxDirectory(sandbox => tokensOf(options.seed, sandbox)),
    credentials: new CredentialCache(options.store, clock),
    seed: options.seed,
    adminToken: options.adminToken ?? null,
    metricsToken: options.metricsToken ?? null,
    limitsOf: limitsFrom(options.limits ?? {}),
    features: { ...noFeatures, ...options.features },
    identity: createIdentity({ seed: options.seed, issuer: options.issuer ?? 'http://localhost', domain, clock }),
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
    nodeHistory: new NodeHistory(),
    commit: options.commit ?? '',
    changes: new ChangeWatch(),
    examine: options.examine ?? null,
    shownSettings: options.shownSettings ?? { file: '', settings: [] },
    metrics: options.metrics ?? (() => []),
    rateLimiter: new RateLimiter(),
    // PostgreSQL reads rows in its own processes, while the thread only waits.
    readsInTurn: turnsOfReads(kindOf(db) === 'postgres' ? readsOnPostgresMax : undefined),
    wrongCredentials: new RateLimiter(),
    signInAttempts: new RateLimiter(),
    passwords: createPasswords(),
    oidc: options.oidc ? oidcProvider(options.oidc) : null,
    uploads: new Uploads(),
    volumeUploads: new VolumeUploads(),
    streams: new OpenStreams(),
    health: new Health(db),
    auditBacklog: new AuditBacklog(options.log),
    flushed: () => options.store.flushed(),
    log: options.log,
    busy: new BusyExecutions(replica.replicaId),
    replica,
    syncClock: async () => sharedClock?.sync(machines?.passed ?? null, options.log),
    resuming: new SingleFlight(),
    domain,
    volumeTokenSeconds: options.volumeTokenSeconds ?? defaultVolumeTokenSeconds,
    filesDir: options.filesDir ?? '/nonexistent',
    diskReserveBytes: options.diskReserveBytes ?? 0,
    followedBuilds: new SingleFlight(),
    awaitedBuilds: new AwaitedBuilds(),
    stopping,
  };
}
