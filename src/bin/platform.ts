import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { defaultDiskMiB } from '../api/app/build-register.ts';
import { defaultSize } from '../api/app/provision-template.ts';
import { type Api, startApi } from '../api/start.ts';
import { AtollError, messageOf } from '../base/error.ts';
import type { Log } from '../base/log.ts';
import { unlessAborted } from '../base/unless-aborted.ts';
import { edgeFamilies } from '../edge/families.ts';
import { type Edge, startEdge, type TlsCertificate, type TlsOptions } from '../edge/start.ts';
import { freeBytesOf } from '../base/disk-room.ts';
import { makeRoomToStart } from '../node/space/ballast.ts';
import { findRunsc } from '../node/drivers/gvisor/find-runsc.ts';
import type { EgressSettings } from '../node/network/egress/egress.ts';
import { type Node, startNode } from '../node/start.ts';
import type { ExecutionRef } from '../protocol/node.ts';
import { nodeAt, serveNode } from '../wire/node-service.ts';
import { sandboxLogDays } from '../protocol/logs.ts';
import { ensureApiKey, ensureTeam } from './accounts.ts';
import { commitOf } from './commit.ts';
import { descriptorsOfEdge, openFilesMax } from './descriptors.ts';
import { readIdentity, readIfThere } from './identity.ts';
import { forgetInstance, noteInstance } from './instance.ts';
import { checkPair } from './installation/check.ts';
import { keepPair, openPair } from './installation/open.ts';
import { builtPrograms, criuDir, repository, runscDir } from './repository.ts';
import { isWildcard, type Settings } from './settings.ts';
import { beginWantedTemplates, ensureBaseTemplate } from './shipped-templates.ts';
import { spanExportOf } from './spans.ts';

export type PlatformOptions = {
  settings: Settings;
  log: Log;
  /** For the tools that make the base template. */
  environment: Record<string, string>;
  /** Told while something slow is done. */
  onPhase: (phase: string) => void;
  /** Goes on with a database that is empty or older than the data directory. */
  acceptDatabase?: boolean;
  /** Ends a start that is under way. */
  signal: AbortSignal;
};

/** A platform that serves. Disposing ends it; its sandboxes run on. */
export type Platform = AsyncDisposable & {
  port: number;
  tlsPort: number | null;
  /** The certificate to trust where the TLS port has one of the installation's own authority. */
  authorityFile: string | null;
  apiKey: string;
  /** Templates that are being built in the background. */
  building: string[];
  /** Fails when the platform can't go on. */
  failed: Promise<never>;
};

/** Starts node, api and edge in this process, and makes what the first start lacks: team, API key, base template. */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { settings, log } = options;
  assertPortsFree(settings);
  assertDriversThere(settings);
  const failed = Promise.withResolvers<never>();
  // Whoever waits for it may come later than the failure.
  failed.promise.catch(() => {});
  await using started = new AsyncDisposableStack();
  // Before anything is made or taken over: a start with the wrong database must leave no trace.
  // A start writes too, and on a full disk there is only what was kept back for that.
  if (existsSync(settings.dataDir)) makeRoomToStart(settings.dataDir, freeBytesOf(settings.dataDir));
  const pair = await checkPair(settings, { accept: options.acceptDatabase ?? false });
  const identity = readIdentity(settings.dataDir);
  const { nodeId, seed, adminToken, metricsToken } = identity;

  const node = await startOwnNode(options, nodeId, settings.poolSize, failed.reject);
  // Forgotten last: until the node has stopped, and given the directory back, `down` has to find and await this process.
  started.defer(() => forgetInstance(settings.dataDir));
  started.defer(() => node.stop());
  noteInstance(settings.dataDir);

  const opened = await openPair(settings, identity, pair);
  const store = started.use(opened.store);
  started.use(keepPair(settings, opened, log, failed.reject));
  const toNode = join(node.runDir, 'node-for-api.sock');
  const served = serveNode({ node: node.protocol, builds: node.builds }, { path: toNode, caller: 'api', uid: process.getuid?.() ?? 0 }, log.with({ part: 'node' }));
  started.defer(() => served.stop());
  const wired = nodeAt(toNode);
  started.defer(() => wired.close());
  const socketPath = join(node.runDir, 'api.sock');
  const spans = spanExportOf(settings, log);
  if (spans) started.defer(() => spans.stop());
  const running: { edge?: Edge } = {};
  const api = await startApi({
    socketPath,
    store,
    node: wired.node,
    builder: wired.builds,
    commit: commitOf(repository),
    trace: settings.trace,
    ...(spans && { spans: { record: spans.record, ratio: settings.traceRatio } }),
    families: () => [...(spans?.families() ?? []), ...(running.edge ? edgeFamilies(running.edge.stats()) : [])],
    retention: { teamDays: settings.teamMetricsDays, pastSandboxHours: Math.max(settings.metricsHours, sandboxLogDays * 24) },
    filesDir: join(settings.dataDir, 'files'),
    diskReserveBytes: settings.diskReserveMiB * 1024 ** 2,
    seed,
    adminToken,
    metricsToken,
    webhooks: { allowPrivateAddresses: settings.webhooksToPrivate },
    requireSecure: settings.requireSecure,
    templateDrivers: settings.templateDrivers ?? new Map(),
    buildsAllowed: settings.builds,
    features: { egressAddresses: true, egressDomains: true, egressProxy: true, headerRules: true, volumes: true },
    domain: settings.domain,
    volumeTokenSeconds: settings.volumeTokenHours * 3600,
    limits: { volumeMiB: settings.volumeMiB },
    log: log.with({ part: 'api' }),
  });
  started.defer(() => api.stop());

  const team = await ensureTeam(api.app);
  const apiKey = await ensureApiKey(api.app, team, settings.dataDir);
  await ensureBaseTemplate({ ...options, app: api.app, node, team });
  const stopping = new AbortController();
  const background = await beginWantedTemplates({ ...options, app: api.app, node, team, onPhase: () => {}, signal: stopping.signal });
  started.defer(() => {
    stopping.abort(new AtollError('canceled', 'The platform was stopped'));
    return background.done;
  });

  const edge = openPort(settings, log, { api, node, socketPath });
  running.edge = edge;
  started.defer(() => edge.stop());
  started.defer(api.directory.onClosed(closed => edge.closed(closed)));
  const disposal = started.move();
  const { port, tlsPort, authorityFile } = edge;
  return { port, tlsPort, authorityFile, apiKey, building: background.names, failed: failed.promise, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

/**
 * Ends the sandboxes of the data directory that run, with `all` also those that are paused or set aside, and removes everything of the
 * installation from the host but the data. Answers what was ended.
 */
export async function endSandboxes(options: Pick<PlatformOptions, 'settings' | 'log'>, { all }: { all: boolean }): Promise<ExecutionRef[]> {
  const nodeId = readIfThere(join(options.settings.dataDir, 'node-id')) ?? '';
  const node = await startOwnNode(options, nodeId, 0, () => {});
  try {
    return await node.down({ all });
  } catch (error) {
    throw new AtollError('unavailable', `Not everything could be removed: ${everyMessageOf(error).join('; ')}. What is named is still there; run it again.`, { cause: error });
  }
}

/** What the steps of a disposal failed with, the first failure first. */
function everyMessageOf(error: unknown): string[] {
  return error instanceof SuppressedError ? [...everyMessageOf(error.suppressed), ...everyMessageOf(error.error)] : [messageOf(error)];
}

async function startOwnNode({ settings, log }: Pick<PlatformOptions, 'settings' | 'log'>, nodeId: string, poolSize: number, onLost: (error: Error) => void): Promise<Node> {
  for (const path of Object.values(builtPrograms)) {
    if (!existsSync(path)) throw new AtollError('unavailable', `${path} is not built yet. Run \`npm run up\`, which builds it.`);
  }
  return startNode({
    nodeId,
    dataDir: settings.dataDir,
    ...builtPrograms,
    nameservers: settings.nameservers,
    egress: egressOf(settings),
    // Blanks have the size of the template that most creates ask for; one of another size gets it when it is claimed.
    pool: { size: poolSize, resources: { ...defaultSize, diskMiB: defaultDiskMiB } },
    builds: {
      filesDir: join(settings.dataDir, 'files'),
      imagesFile: join(settings.dataDir, 'images.json'),
      authorities: settings.buildAuthorities,
      cacheBytesMax: settings.buildCacheGiB * 2 ** 30,
      network: settings.buildNetwork,
    },
    criuDir,
    runscDir,
    driver: settings.driver,
    standMs: settings.frozenSeconds * 1000,
    metricsHours: settings.metricsHours,
    diskReserveBytes: settings.diskReserveMiB * 1024 ** 2,
    logs: { bytesMax: settings.sandboxLogsMiB * 1024 ** 2, output: settings.sandboxLogOutput },
    log: log.with({ part: 'node' }),
    onHelperLost: () => onLost(new AtollError('internal', 'The native helper has ended. Start Atoll again: its sandboxes run on and are taken over.')),
  });
}

function egressOf({ domain, host, port, tlsPort, sandboxBandwidthMbit, egressOpenTls }: Settings): EgressSettings {
  // A name of `localhost` is the sandbox's own, and a port that is not known yet can't be named to it.
  const isReachable = domain !== 'localhost' && !domain.endsWith('.localhost') && port !== 0;
  const address = isWildcard(host) ? '127.0.0.1' : host;
  return {
    opensAllowedNames: egressOpenTls,
    ...(sandboxBandwidthMbit !== undefined && { bandwidthBytesPerSecond: sandboxBandwidthMbit * 125_000 }),
    ...(isReachable && { platform: { domain, address, httpPort: port, ...(tlsPort !== undefined && { tlsPort }) } }),
  };
}

function openPort(settings: Settings, log: Log, { api, node, socketPath }: { api: Api; node: Node; socketPath: string }): Edge {
  try {
    return startEdge({
      hostname: settings.host,
      port: settings.port,
      apiSocketPath: socketPath,
      directory: { find: sandboxId => api.directory.find(sandboxId), wake: (sandboxId, signal) => unlessAborted(api.wake(sandboxId), signal, 'Nobody waits for the answer any more.') },
      dial: (sandboxId, port, signal) => node.protocol.dial(sandboxId, port, signal),
      trustForwardedHeaders: settings.trustForwarded,
      descriptorsMax: descriptorsOfEdge(openFilesMax()),
      ...tlsOf(settings),
      log: log.with({ part: 'edge' }),
    });
  } catch (error) {
    // A certificate that can't be used says so itself.
    throw error instanceof AtollError ? error : portError(settings, error);
  }
}

/** The TLS port, with the operator's certificate or one of an authority of this installation. */
function tlsOf(settings: Settings): { tls?: TlsOptions } {
  const { host, domain, dataDir, tlsPort, tlsCertificate, tlsKey } = settings;
  if (tlsPort === undefined) return {};
  const certificate: TlsCertificate =
    tlsCertificate !== undefined && tlsKey !== undefined
      ? { kind: 'files', certFile: tlsCertificate, keyFile: tlsKey }
      : { kind: 'local', folder: join(dataDir, 'tls'), names: [...new Set([domain, `*.${domain}`, 'localhost', '127.0.0.1', ...(isWildcard(host) ? [] : [host])])] };
  return { tls: { hostname: host, port: tlsPort, certificate } };
}

/** What is to be isolated by gVisor must never run on anything less. */
function assertDriversThere({ driver, templateDrivers }: Settings): void {
  const runsc = findRunsc(runscDir);
  if (runsc.found || ![driver, ...(templateDrivers?.values() ?? [])].includes('gvisor')) return;
  throw new AtollError('unavailable', `ATOLL_DRIVER or ATOLL_TEMPLATE_DRIVERS asks for gVisor, which is not there: ${runsc.reason}.`);
}

/** Says so at once, and not after the base template was made for minutes. */
function assertPortsFree(settings: Settings): void {
  for (const port of [settings.port, settings.tlsPort ?? 0]) {
    try {
      Bun.listen({ hostname: settings.host, port, socket: { data() {} } }).stop(true);
    } catch (error) {
      throw portError(settings, error, port);
    }
  }
}

function portError({ host, port, tlsPort }: Settings, cause: unknown, refused?: number): AtollError {
  const which = refused === undefined ? `Port ${port}${tlsPort === undefined ? '' : ` or ${tlsPort}`}` : `Port ${refused}`;
  const variable = refused !== undefined && refused === tlsPort && refused !== port ? 'ATOLL_TLS_PORT' : 'ATOLL_PORT';
  return new AtollError('conflict', `${which} of ${host} can't be opened (${messageOf(cause)}). End what uses it, or set ${variable} to another one.`, { cause });
}
