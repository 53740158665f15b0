import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { userIdOf } from '../../base/process/part-users.ts';
import { unlessAborted } from '../../base/concurrency/unless-aborted.ts';
import { AtollError } from '../../base/error.ts';
import { apiFolders, prepareDataDirectory } from '../../api/installation/data-directory.ts';
import { claimInstallation } from '../../node/installation.ts';
import { budgetsOf } from '../../supervisor/budgets.ts';
import { watchCertificate } from '../../supervisor/certificates/watch.ts';
import { makePartGroups } from '../../supervisor/control-groups.ts';
import type { Part } from '../../supervisor/part.ts';
import { RestartCounts } from '../../supervisor/restart-counts.ts';
import { beginWith } from '../platform/begin-parts.ts';
import { openCertificate } from '../platform/certificate.ts';
import { readIdentity } from '../platform/identity.ts';
import { forgetInstance, noteInstance } from '../platform/instance.ts';
import { type ApiAbout, socketsIn } from '../parts/about.ts';
import type { ApiUpdate } from '../parts/api.ts';
import type { EdgeUpdate } from '../parts/edge.ts';
import type { Platform, PlatformOptions } from '../platform/platform.ts';
import { beginApi, beginEdge } from '../platform/platform-parts.ts';
import { portError, requirePortsFree } from '../preflight/ports.ts';

/**
 * Starts a control process: an api and an edge without a node, beside any number of equal ones on the same PostgreSQL.
 * Errors: `precondition` without PostgreSQL, or with another seed than the others have.
 */
export async function startControl(options: PlatformOptions): Promise<Platform> {
  const { settings, log, environment, signal } = options;
  const { dataDir } = settings;
  if (settings.databaseUrl === undefined)
    throw new AtollError(
      'precondition',
      'Control processes share their state in PostgreSQL: set ATOLL_DATABASE_URL. One machine alone is `atoll up`.',
    );
  requirePortsFree(settings);
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {}); // a caller may begin to wait after the failure
  await using started = new AsyncDisposableStack();
  const { number: installation, runDir, surrender, unlock } = claimInstallation(dataDir);
  started.defer(() => {
    surrender();
    unlock();
  });
  const identity = readIdentity(dataDir);
  started.defer(() => forgetInstance(dataDir));
  noteInstance(dataDir);
  makeFolders(runDir, installation);
  prepareDataDirectory(dataDir, userIdOf('api', installation));
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
  const served = <About>(part: Part<About>) => unlessAborted(part.ready, signal, 'The start was interrupted.');
  parts.api = beginApi(begin, common, { installation, runDir }, { pair: null, restarts, fail: failed.reject });
  const about = await served(parts.api);
  const certificate = openCertificate(settings, log);
  const edge = beginEdge(
    begin,
    common,
    Promise.resolve({ installation, runDir, certificate: certificate?.source, isControl: true }),
  );
  if (certificate)
    started.use(
      watchCertificate(certificate.source, pair => edge.update({ certificate: pair } satisfies EdgeUpdate), log),
    );
  const { port, tlsPort } = await served(edge).catch((error: unknown) => {
    throw error instanceof AtollError && error.code !== 'internal' ? error : portError(settings, error);
  });
  const disposal = started.move();
  return {
    ...about,
    port,
    tlsPort,
    authorityFile: certificate?.authorityFile ?? null,
    failed: failed.promise,
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

const setGroup = 0o2000;
const ownerAllGroupPass = 0o710;

/** Where the api serves the edge: the folder is the api's, and the edge's group may pass. */
function makeFolders(runDir: string, installation: number): void {
  const [api, edge] = [userIdOf('api', installation), userIdOf('edge', installation)];
  const sockets = socketsIn(runDir);
  mkdirSync(sockets.folder, { recursive: true });
  chownSync(sockets.folder, api, edge);
  chmodSync(sockets.folder, setGroup | ownerAllGroupPass);
  for (const name of apiFolders) mkdirSync(join(sockets.data, name), { recursive: true, mode: 0o700 });
  chownSync(sockets.data, api, api);
}
