import { loadDocs } from '../../api/dashboard/docs.ts';
import { loadDashboard } from '../../api/dashboard/files.ts';
import { edgeMetrics } from '../../api/metrics/edge-metrics.ts';
import { createSignInLink } from '../../api/session/rules/links.ts';
import { startApi } from '../../api/start.ts';
import { AtollError } from '../../base/error.ts';
import { createLog, type Log } from '../../base/telemetry/log.ts';
import { checkStore } from '../../blob/check.ts';
import { openBlobStore, type StorePlace } from '../../blob/open.ts';
import type { Metric } from '../../base/telemetry/meter.ts';
import { userIdOf } from '../../base/process/part-users.ts';
import type { EdgeStats } from '../../protocol/directory.ts';
import type { ShownSettings } from '../../protocol/api/installation.ts';
import type { HostFinding } from '../../protocol/doctor.ts';
import type { DriverName } from '../../protocol/driver.ts';
import type { OidcFile } from '../../protocol/oidc.ts';
import { sandboxLogDays } from '../../protocol/logs.ts';
import { runPart } from '../../supervisor/inside.ts';
import { serveDirectory } from '../../wire/directory-service.ts';
import type { ClusterLinks } from '../../protocol/cluster.ts';
import { copyLayer } from '../../wire/layer-copy.ts';
import { pump, socketSink, socketSource } from '../../wire/pump.ts';
import { machineAt, nodeAt } from '../../wire/node-service.ts';
import { openShared } from '../../api/installation/control.ts';
import { ensureClusterTemplates } from '../../api/shipped/cluster-templates.ts';
import { cordonsOf } from '../../api/cluster/rules/kubernetes.ts';
import { podReview } from '../../api/cluster/rules/review-pod.ts';
import type { ShippedTemplatesOptions } from '../../api/shipped/options.ts';
import type { Store } from '../../api/database/database.ts';
import type { StoreLocation } from '../../api/database/db.ts';
import { ensureFirstApiKey, ensureFirstTeam } from '../../api/local/first-accounts.ts';
import { filesDirOf } from '../../api/installation/data-directory.ts';
import type { Identity } from '../platform/identity.ts';
import type { Pair } from '../../api/installation/check.ts';
import { placeOf } from '../../api/installation/place.ts';
import { keepPair, openPair } from '../../api/installation/open.ts';
import { dashboardDir, docsDir } from '../repository.ts';
import type { Settings } from '../settings/settings.ts';
import { beginWantedTemplates, buildOnDemand, ensureBaseTemplate, ensureShipped } from '../../api/shipped/templates.ts';
import { shippedBuilds } from '../../api/shipped/builds.ts';
import { spanExportOf } from '../spans.ts';
import type { ApiAbout } from '../../protocol/wire/part-about.ts';
import { socketsIn } from './sockets.ts';

// The api: rules and state. It runs as a user of its own, which owns its database and the uploaded files and can read
// nothing else.

/** Settings and secrets of the api. They come from the supervisor; the api reads none itself. */
export type ApiSettings = {
  settings: Settings;
  identity: Identity;
  /** Null: a replica of control, whose sandboxes are on machines that join. */
  pair: Pair | null;
  installation: number;
  runDir: string;
  /** Commit of the running source. */
  commit: string;
  /** Where a cluster keeps what outlives its machines. */
  storePlace: StorePlace | undefined;
  /** Contents of files that the api can't read: the key of the first start, and which shipped templates were built. */
  apiKey: string | undefined;
  shippedBuilds: string | undefined;
  restarts: Metric;
  /** As shown to the operator: without secrets. */
  shownSettings: ShownSettings;
  /** The identity provider that people sign in with; null: none. Only root can read its file. */
  oidc: OidcFile | null;
};

/** Restarts of processes, as the supervisor counts them. */
export type ApiUpdate = { restarts: Metric };

/** For the folder's owner and its group, which is the edge's group. */
const ownerAndGroup = 0o660;

runPart<ApiSettings, ApiUpdate>(async (given, control) => {
  const { identity, installation, runDir } = given;
  const sockets = socketsIn(runDir);
  // The api sees its folders of the data directory here.
  const settings = { ...given.settings, dataDir: sockets.data };
  // Loaded while the checkout is still readable.
  const [dashboard, docs] = [loadDashboard(dashboardDir), loadDocs(docsDir)];
  control.becomeUser(userIdOf('api', installation));
  process.umask(0o077);
  const log = createLog(settings.logLevel, text => void process.stderr.write(text)).with({ part: 'api' });
  await using started = new AsyncDisposableStack();
  const node = given.pair && nodeAt(sockets.nodeForApi);
  started.defer(() => node?.close());
  const store = await openState(given, placeOf(settings).database, control.ask, { started, log });
  await control.ask('node', null);
  const spans = spanExportOf(settings, log);
  if (spans) started.defer(() => spans.stop());
  let { restarts } = given;
  let edgeStats: EdgeStats | undefined;
  const api = await startApi({
    socketPath: sockets.api,
    socketMode: ownerAndGroup,
    store,
    ...(node ? { node: node.node, builder: node.builds } : { cluster: clusterOf(given, log) }),
    commit: given.commit,
    examine: () => control.ask<HostFinding[]>('doctor', null),
    shownSettings: given.shownSettings,
    dashboard,
    docs,
    ...(spans && { spans: { record: spans.record, ratio: settings.traceRatio } }),
    metrics: () => [...(spans?.metrics() ?? []), ...(edgeStats ? edgeMetrics(edgeStats) : []), restarts],
    ...optionsOf(settings),
    ...(given.oidc && { oidc: given.oidc }),
    seed: identity.seed,
    adminToken: identity.adminToken,
    metricsToken: identity.metricsToken,
    log,
  });
  started.defer(() => api.stop());
  const uid = userIdOf('edge', installation);
  const directory = { ...api.forEdge, report: async (stats: EdgeStats) => void (edgeStats = stats) };
  const served = serveDirectory(
    directory,
    { path: sockets.directory, uid, onGone: () => api.directory.edgeGone() },
    log,
  );
  started.defer(() => served.stop());

  const team = await ensureFirstTeam(api.parts);
  const apiKey = await ensureFirstApiKey(api.parts, team, given.apiKey);
  const stopping = new AbortController();
  const shippedOptions = {
    parts: api.parts,
    team,
    settings,
    builds: shippedBuilds(given.shippedBuilds, text => control.ask('shipped templates', text)),
    signal: stopping.signal,
  };
  const { machines } = api.parts;
  const quiet = { ...shippedOptions, onPhase: () => {} };
  const background = node
    ? await beginShipped({ ...quiet, shipped: node.shipped }, control.phase)
    : { names: [], done: machines ? ensureClusterTemplates(quiet, machines) : undefined };
  started.defer(() => {
    stopping.abort(new AtollError('canceled', 'The platform was stopped'));
    return Promise.all([background.done, api.parts.awaitedBuilds.settled()]).then(() => {});
  });
  const disposal = started.move();
  const signInPath = dashboard && (await createSignInLink(api.parts, null)).path;
  const about: ApiAbout = { apiKey, building: background.names, signInPath };
  return { about, stop: () => disposal.disposeAsync(), update: update => void ({ restarts } = update) };
});

/** The state of one machine, which belongs to its data directory, or that of a cluster. `started` closes it. */
async function openState(
  { pair, identity }: ApiSettings,
  database: StoreLocation,
  ask: (what: string, value: unknown) => Promise<void>,
  { started, log }: { started: AsyncDisposableStack; log: Log },
): Promise<Store> {
  if (!pair) return started.use(await openShared(database, identity.seed));
  const write = (facts: unknown) => ask('installation facts', facts);
  const opened = await openPair(database, identity, pair, write);
  started.use(opened.store);
  // The whole platform must end then: retrying can't help against a different database.
  started.use(keepPair(write, opened, log, error => void ask('end', error.message)));
  return opened.store;
}

/** How clients reach the API unless something else is configured. */
function apiUrl({ domain, port, tlsPort }: Settings): string {
  return tlsPort === undefined ? `http://${domain}:${port}` : new URL(`https://api.${domain}:${tlsPort}`).origin;
}

/** The operator's settings for the api, in its units. */
function optionsOf(settings: Settings) {
  return {
    trace: settings.trace,
    retention: {
      teamDays: settings.teamMetricsDays,
      pastSandboxHours: Math.max(settings.metricsHours, sandboxLogDays * 24),
    },
    filesDir: filesDirOf(settings.dataDir),
    diskReserveBytes: settings.diskReserveMiB * 1024 ** 2,
    webhooks: { allowPrivateAddresses: settings.webhooksToPrivate },
    requireSecure: settings.requireSecure,
    templateDrivers: settings.templateDrivers ?? new Map<string, DriverName>(),
    buildsAllowed: settings.builds,
    features: {
      egressAddresses: true,
      egressDomains: true,
      egressProxy: true,
      headerRules: true,
      volumes: true,
      iam: true,
    },
    issuer: settings.issuer ?? apiUrl(settings),
    domain: settings.domain,
    volumeTokenSeconds: settings.volumeTokenHours * 3600,
    limits: { volumeMiB: settings.volumeMiB },
  };
}
/** `base` is there before the platform serves; the others are built meanwhile or on demand. */
async function beginShipped(options: ShippedTemplatesOptions, onPhase: (phase: string) => void) {
  await ensureBaseTemplate({ ...options, onPhase });
  buildOnDemand(options, name => ensureShipped(name, options));
  return beginWantedTemplates(options);
}

/** How a cluster's api works with its machines. */
function clusterOf({ storePlace, runDir, settings }: ApiSettings, log: Log) {
  const blobs = storePlace && openBlobStore(storePlace, socketsIn(runDir).store);
  return {
    links: clusterLinks(log),
    isolationSeconds: settings.isolationSeconds,
    ...(settings.nodeServiceAccount && { reviewPod: podReview(settings.nodeServiceAccount), cordoned: cordonsOf() }),
    ...(blobs && { store: { blobs, check: () => checkStore(blobs) } }),
  };
}

/** Reaches the machines of a cluster over TLS. */
const clusterLinks = (log: Log): ClusterLinks => ({
  connect: (nodeId, way) => machineAt(nodeId, way, log),
  copyLayer,
  read: socketSource,
  write: async (descriptor, bytes) => pump(bytes, await socketSink(descriptor)),
});
