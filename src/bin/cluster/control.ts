import { totalmem } from 'node:os';
import { mayMount } from '../../base/process/may-mount.ts';
import { userIdOf } from '../../base/process/part-users.ts';
import { AtollError } from '../../base/error.ts';
import { prepareDataDirectory } from '../../api/installation/data-directory.ts';
import { claimInstallation } from '../../node/installation.ts';
import type { StorePlace } from '../../blob/open.ts';
import { budgetsOf } from '../../supervisor/budgets.ts';
import { makePartGroups, noPartGroups } from '../../supervisor/control-groups.ts';
import type { Part } from '../../supervisor/part.ts';
import { RestartCounts } from '../../supervisor/restart-counts.ts';
import { beginWith } from '../platform/begin-parts.ts';
import { openCertificate } from '../platform/certificate.ts';
import { edgeServes, served } from '../platform/edge-serves.ts';
import { readIdentity } from '../platform/identity.ts';
import { forgetInstance, recordInstance } from '../platform/instance.ts';
import type { ApiAbout } from '../../protocol/wire/part-about.ts';
import type { ApiUpdate } from '../parts/api.ts';
import { makeSocketFolder } from '../parts/sockets.ts';
import type { Platform, PlatformOptions } from '../platform/platform.ts';
import { beginApi, beginEdge } from '../platform/platform-parts.ts';
import { requirePortsFree } from '../preflight/ports.ts';
import { requireRole } from '../preflight/role.ts';
import type { Settings } from '../settings/settings.ts';
import { storePlaceOf } from '../settings/store-place.ts';

/**
 * Starts a control process: an api and an edge without a node, beside any number of equal ones on the same PostgreSQL.
 * In a container that may not mount, it does without mounts and cgroups of its own. Errors: `precondition` without
 * PostgreSQL, or if the others have another seed.
 */
export async function startControl(options: PlatformOptions): Promise<Platform> {
  const { settings, log, environment, signal } = options;
  const { dataDir } = settings;
  if (settings.databaseUrl === undefined)
    throw new AtollError(
      'precondition',
      'Control processes share their state in PostgreSQL: set ATOLL_DATABASE_URL. One machine alone is `atoll up`.',
    );
  requireRole(dataDir, 'control');
  const isConfined = !mayMount();
  const storePlace = usableStore(settings, isConfined);
  requirePortsFree(settings);
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {}); // a caller may begin to wait after the failure
  await using started = new AsyncDisposableStack();
  const { number: installation, runDir, release, unlock } = claimInstallation(dataDir, { inMemory: !isConfined });
  started.defer(() => {
    release();
    unlock();
  });
  const identity = readIdentity(dataDir);
  started.defer(() => forgetInstance(dataDir));
  recordInstance(dataDir);
  const api = userIdOf('api', installation);
  makeSocketFolder(runDir, { api, edge: userIdOf('edge', installation) });
  prepareDataDirectory(dataDir, api);
  const restarts = new RestartCounts();
  const parts: { api?: Part<ApiAbout> } = {};
  const groups = isConfined ? noPartGroups : started.use(makePartGroups(budgetsOf(totalmem())));
  const begin = beginWith(started, {
    ...options,
    onRestart(name, reason) {
      restarts.count(name, reason);
      parts.api?.update({ restarts: restarts.metric() } satisfies ApiUpdate);
    },
    onGivenUp: failed.reject,
  });
  const common = { settings, environment, identity, groups };
  parts.api = beginApi(
    begin,
    common,
    { installation, runDir },
    { pair: null, restarts, nodeServes: Promise.resolve(), fail: failed.reject, storePlace, isConfined },
  );
  const about = await served(parts.api, signal);
  const certificate = openCertificate(settings, log);
  const edge = beginEdge(
    begin,
    common,
    Promise.resolve({ installation, runDir, certificate: certificate?.source, isControl: true }),
  );
  const edgeAbout = await edgeServes(started, edge, certificate, options);
  const disposal = started.move();
  return { ...about, ...edgeAbout, failed: failed.promise, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

/**
 * Where the cluster keeps what outlives its machines. Errors: `precondition` if it is a directory that can't be
 * mounted.
 */
function usableStore(settings: Settings, isConfined: boolean): StorePlace | undefined {
  const place = storePlaceOf(settings);
  if (isConfined && place?.kind === 'directory')
    throw new AtollError(
      'precondition',
      'ATOLL_STORE is a directory, which is mounted for the api, and this container may not mount (CAP_SYS_ADMIN): ' +
        'use an S3 store, or give it that right.',
    );
  return place;
}
