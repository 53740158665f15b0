import { edgeFamilies } from '../../api/app/edge-families.ts';
import { startApi } from '../../api/start.ts';
import { AtollError } from '../../base/error.ts';
import { createLog } from '../../base/log.ts';
import type { Family } from '../../base/meter.ts';
import { userIdOf } from '../../base/part-users.ts';
import type { EdgeStats } from '../../protocol/directory.ts';
import { sandboxLogDays } from '../../protocol/logs.ts';
import { runPart } from '../../supervisor/inside.ts';
import { serveDirectory } from '../../wire/directory-service.ts';
import { nodeAt } from '../../wire/node-service.ts';
import { ensureApiKey, ensureTeam } from '../accounts.ts';
import { filesDirOf } from '../data-directory.ts';
import type { Identity } from '../identity.ts';
import type { Pair } from '../installation/check.ts';
import { keepPair, openPair } from '../installation/open.ts';
import type { Settings } from '../settings.ts';
import { beginWantedTemplates, ensureBaseTemplate } from '../shipped-templates.ts';
import { shippedNotes } from '../shipped-record.ts';
import { spanExportOf } from '../spans.ts';
import { type ApiAbout, socketsIn } from './about.ts';

// The api: rules and state. It runs as a user of its own, which owns its database and uploaded files and can read nothing else.

export type ApiSettings = {
  settings: Settings;
  identity: Identity;
  pair: Pair;
  installation: number;
  runDir: string;
  /** Of the source that runs. */
  commit: string;
  /** Texts of files that it may not read: the key of the first start, and which shipped templates were built. */
  apiKey: string | undefined;
  shippedNotes: string | undefined;
  restarts: Family;
};

/** Starts of processes again, as the supervisor counts them. */
export type ApiUpdate = { restarts: Family };

/** Who connects: the owner and the group of the folder, which is the edge's. */
const ownerAndGroup = 0o660;

runPart<ApiSettings, ApiUpdate>(async (given, control) => {
  const { identity, installation, runDir } = given;
  const sockets = socketsIn(runDir);
  // What is its own of the data directory, it sees here.
  const settings = { ...given.settings, dataDir: sockets.data };
  control.becomeUser(userIdOf('api', installation));
  process.umask(0o077);
  const log = createLog(settings.logLevel, text => void process.stderr.write(text)).with({ part: 'api' });
  await using started = new AsyncDisposableStack();
  const node = nodeAt(sockets.nodeForApi);
  started.defer(() => node.close());
  const write = (note: unknown) => control.ask('installation note', note);
  const opened = await openPair(settings, identity, given.pair, write);
  const store = started.use(opened.store);
  // The whole platform has to end then: another database is not another attempt.
  started.use(keepPair(write, opened, log, error => void control.ask('end', error.message)));
  const spans = spanExportOf(settings, log);
  if (spans) started.defer(() => spans.stop());
  let { restarts } = given;
  let edgeStats: EdgeStats | undefined;
  const api = await startApi({
    socketPath: sockets.api,
    socketMode: ownerAndGroup,
    store,
    node: node.node,
    builder: node.builds,
    commit: given.commit,
    trace: settings.trace,
    ...(spans && { spans: { record: spans.record, ratio: settings.traceRatio } }),
    families: () => [...(spans?.families() ?? []), ...(edgeStats ? edgeFamilies(edgeStats) : []), restarts],
    retention: { teamDays: settings.teamMetricsDays, pastSandboxHours: Math.max(settings.metricsHours, sandboxLogDays * 24) },
    filesDir: filesDirOf(settings.dataDir),
    diskReserveBytes: settings.diskReserveMiB * 1024 ** 2,
    seed: identity.seed,
    adminToken: identity.adminToken,
    metricsToken: identity.metricsToken,
    webhooks: { allowPrivateAddresses: settings.webhooksToPrivate },
    requireSecure: settings.requireSecure,
    templateDrivers: settings.templateDrivers ?? new Map(),
    buildsAllowed: settings.builds,
    features: { egressAddresses: true, egressDomains: true, egressProxy: true, headerRules: true, volumes: true },
    domain: settings.domain,
    volumeTokenSeconds: settings.volumeTokenHours * 3600,
    limits: { volumeMiB: settings.volumeMiB },
    log,
  });
  started.defer(() => api.stop());
  const uid = userIdOf('edge', installation);
  const directory = { ...api.forEdge, report: async (stats: EdgeStats) => void (edgeStats = stats) };
  const served = serveDirectory(directory, { path: sockets.directory, uid, onGone: () => api.directory.edgeGone() }, log);
  started.defer(() => served.stop());

  const team = await ensureTeam(api.app);
  const apiKey = await ensureApiKey(api.app, team, given.apiKey);
  const stopping = new AbortController();
  const shippedOptions = {
    app: api.app,
    shipped: node.shipped,
    team,
    settings,
    notes: shippedNotes(given.shippedNotes, text => control.ask('shipped templates', text)),
    signal: stopping.signal,
  };
  await ensureBaseTemplate({ ...shippedOptions, onPhase: control.phase });
  const background = await beginWantedTemplates({ ...shippedOptions, onPhase: () => {} });
  started.defer(() => {
    stopping.abort(new AtollError('canceled', 'The platform was stopped'));
    return background.done;
  });
  const disposal = started.move();
  const about: ApiAbout = { apiKey, building: background.names };
  return {
    about,
    stop: () => disposal.disposeAsync(),
    update: update => void ({ restarts } = update),
  };
});
