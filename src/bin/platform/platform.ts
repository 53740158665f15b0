import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { checkPair } from '../../api/installation/check.ts';
import { apiKeyFile, prepareDataDirectory } from '../../api/installation/data-directory.ts';
import { placeOf } from '../../api/installation/place.ts';
import { freeBytesOf } from '../../base/disk-room.ts';
import { AtollError } from '../../base/error.ts';
import { readIfThere } from '../../base/small-file.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { userIdOf } from '../../base/process/part-users.ts';
import { unlessAborted } from '../../base/concurrency/unless-aborted.ts';
import { findRunsc } from '../../node/drivers/gvisor/find-runsc.ts';
import { makeRoomToStart } from '../../node/space/ballast.ts';
import { budgetsOf } from '../../supervisor/budgets.ts';
import { makePartGroups } from '../../supervisor/control-groups.ts';
import type { Part } from '../../supervisor/part.ts';
import { RestartCounts } from '../../supervisor/restart-counts.ts';
import { readOidcFile } from '../settings/oidc-file.ts';
import { openCertificate, requireCertificate } from './certificate.ts';
import { beginWith } from './begin-parts.ts';
import { edgeServes, served } from './edge-serves.ts';
import { readIdentity } from './identity.ts';
import { forgetInstance, recordInstance, requireNoInstance } from './instance.ts';
import type { ApiAbout } from '../../protocol/wire/part-about.ts';
import type { ApiUpdate } from '../parts/api.ts';
import type { InstallationPlace } from '../parts/sockets.ts';
import { beginApi, beginEdge, beginNode, type EdgeSurroundings } from './platform-parts.ts';
import { requireAuthorities } from '../preflight/authorities.ts';
import { requireUsableHost } from '../preflight/check.ts';
import { hostFacts } from '../preflight/facts.ts';
import { requirePortsFree } from '../preflight/ports.ts';
import { requireRole } from '../preflight/role.ts';
import { takePriority } from './priority.ts';
import { runscDir } from '../repository.ts';
import type { Settings } from '../settings/settings.ts';

/** Settings and callbacks of a start. */
export type PlatformOptions = {
  settings: Settings;
  log: Log;
  /** For the tools that make the base template, and for the node's programs. */
  environment: Record<string, string>;
  /** Called at the beginning of each slow phase. */
  onPhase: (phase: string) => void;
  /** Continues with a database that is empty or older than the data directory. */
  acceptDatabase?: boolean;
  /** Aborts a start in progress. */
  signal: AbortSignal;
};

/** A serving platform. Disposing of it ends it; its sandboxes run on. */
export type Platform = AsyncDisposable & {
  port: number;
  tlsPort: number | null;
  /** The certificate to trust if the TLS port's is signed by the installation's own authority. */
  authorityFile: string | null;
  apiKey: string;
  /** Templates that are being built in the background. */
  building: string[];
  /** Path of a link that signs the operator in to the dashboard; null if the dashboard is not built. */
  signInPath: string | null;
  /** Rejects when the platform can't go on. */
  failed: Promise<never>;
};

/** Starts the node, the api and the edge, each as a process with only the rights that it needs, and watches them. */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { settings, log, environment, signal } = options;
  const { dataDir } = settings;
  const isFirst = readIfThere(apiKeyFile(dataDir)) === undefined;
  if (settings.store)
    throw new AtollError(
      'invalid',
      'ATOLL_STORE is for the control processes of a cluster (`atoll control`): one machine keeps all on its own disk.',
    );
  requireRole(dataDir, 'platform');
  requireUsableHost(settings, hostFacts(environment['PATH'] ?? ''), isFirst);
  requireNoInstance(dataDir);
  requirePortsFree(settings);
  assertDriversThere(settings);
  requireAuthorities(settings);
  requireCertificate(settings, log);
  readOidcFile(settings);
  const failed = Promise.withResolvers<never>();
  // A caller may begin to wait only after the failure.
  failed.promise.catch(() => {});
  await using started = new AsyncDisposableStack();
  // A start writes too; on a full disk, only the reserve leaves room for that.
  if (existsSync(dataDir)) makeRoomToStart(dataDir, freeBytesOf(dataDir));
  // Before anything is made or taken over: a start with the wrong database must leave no trace.
  const pair = await checkPair(placeOf(settings), { accept: options.acceptDatabase ?? false, alone: true });
  // A machine that has run sandboxes before is not examined again, so that starts stay fast.
  if (isFirst) {
    const { requireAbleHost } = await import('../preflight/able-host.ts');
    await unlessAborted(requireAbleHost(settings), signal, 'The start was interrupted.');
  }
  takePriority();
  const identity = readIdentity(dataDir);
  const restarts = new RestartCounts();
  const parts: { api?: Part<ApiAbout> } = {};
  const groups = started.use(makePartGroups(budgetsOf(totalmem())));
  const begin = beginWith(started, {
    ...options,
    onRestart(name, reason) {
      restarts.count(name, reason);
      parts.api?.update({ restarts: restarts.metric() } satisfies ApiUpdate);
    },
    onGivenUp: failed.reject,
  });
  const common = { settings, environment, identity, groups };

  const claimed = Promise.withResolvers<InstallationPlace>();
  const nodeServes = served(beginNode(begin, common, { isForGate: false, onClaimed: claimed.resolve }), signal);
  const apiServes = Promise.withResolvers<EdgeSurroundings>();
  // Each part loads while those that it needs start.
  const edge = beginEdge(begin, common, apiServes.promise);
  const installation = await Promise.race([claimed.promise, nodeServes.then(() => claimed.promise)]);
  // Forgotten before the node has stopped, and recorded once it has the directory.
  started.defer(() => forgetInstance(dataDir));
  recordInstance(dataDir);
  prepareDataDirectory(dataDir, userIdOf('api', installation.installation));
  parts.api = beginApi(begin, common, installation, { pair, restarts, nodeServes, fail: failed.reject });
  const { apiKey, building, signInPath } = await served(parts.api, signal);
  const certificate = openCertificate(settings, log);
  apiServes.resolve({ ...installation, certificate: certificate?.source, isControl: false });
  const edgeAbout = await edgeServes(started, edge, certificate, options);
  const disposal = started.move();
  return {
    ...edgeAbout,
    apiKey,
    building,
    signInPath,
    failed: failed.promise,
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

/** Sandboxes meant for gVisor must never run with weaker isolation. Errors: `unavailable`. */
export function assertDriversThere({ driver, templateDrivers }: Settings): void {
  const runsc = findRunsc(runscDir);
  if (runsc.found || ![driver, ...(templateDrivers?.values() ?? [])].includes('gvisor')) return;
  throw new AtollError(
    'unavailable',
    `ATOLL_DRIVER or ATOLL_TEMPLATE_DRIVERS asks for gVisor, which is not there: ${runsc.reason}.`,
  );
}
