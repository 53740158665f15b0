import { sandboxLogDays } from '../protocol/logs.ts';
import type { DirectoryProtocol } from '../protocol/directory.ts';
import type { MetricsRetention } from './metrics/reconcilers/team.ts';
import type { ApiOptions } from './options.ts';
import { type ApiParts, createParts } from './parts.ts';
import { startReconcilers } from './reconcilers.ts';
import { routes } from './routes.ts';
import type { SandboxDirectory } from './sandbox/directory/directory.ts';
import { wayFor } from './cluster/rules/way.ts';
import { followChanges } from './sandbox/reconcilers/changes.ts';
import { followIncidents } from './sandbox/reconcilers/incidents.ts';
import { directoryFor } from './sandbox/workflows/edge-protocol.ts';
import { serveApi } from './server/server.ts';
import { WebhookDispatcher } from './webhook/delivery/dispatcher.ts';

/** A running API. */
export type Api = {
  /** For code in the same process: the first start makes accounts with them. */
  parts: ApiParts;
  /** Where each sandbox is. */
  directory: SandboxDirectory;
  /** The directory's answers for the edge. */
  forEdge: Omit<DirectoryProtocol, 'report'>;
  /** True once the sandboxes of the last run were adopted. */
  isReady(): boolean;
  /** Stops accepting requests and reconciling. Running sandboxes stay. */
  stop(): Promise<void>;
};

const defaultRetention: MetricsRetention = { teamDays: 14, pastSandboxHours: sandboxLogDays * 24 };
/** Permission bits of the socket, unless `socketMode` sets them. */
const ownerOnly = 0o600;

/**
 * Starts the API. Answers when it listens and the node's sandboxes were adopted or, if that failed, while it is tried
 * again.
 */
export async function startApi(options: ApiOptions): Promise<Api> {
  const stopping = new AbortController();
  const parts = await createParts(options, stopping.signal);
  const ready = { adopted: false };
  await using started = new AsyncDisposableStack();
  started.defer(() => parts.replica.leave().catch(() => {})); // its lease expires
  started.defer(() => parts.credentials.flushUses());
  started.defer(followChanges(parts, options.store));
  if (options.node) {
    const incidents = followIncidents(parts, options.node);
    started.defer(() => incidents.stop());
  }
  parts.machines?.follow(node => followIncidents(parts, node));
  started.defer(async () => parts.machines?.stop());
  for (const loop of await startReconcilers(parts, ready, options.retention ?? defaultRetention))
    started.defer(() => loop.stop());
  const dispatcher = await WebhookDispatcher.start(parts);
  started.defer(() => dispatcher.stop());
  const isReady = () => ready.adopted;
  const { socketPath, socketMode = ownerOnly, checkAnswers = false } = options;
  const server = await serveApi({
    parts,
    routes,
    socketPath,
    socketMode,
    isReady,
    checkAnswers,
    trace: options.trace ?? false,
    ...(options.dashboard && { dashboard: options.dashboard }),
    ...(options.docs && { docs: options.docs }),
    ...(options.spans && { spans: options.spans }),
  });
  started.defer(() => server.stop());

  const disposal = started.move();
  return {
    parts,
    directory: parts.directory,
    forEdge: { ...directoryFor(parts), way: wayFor(parts) },
    isReady,
    stop: async () => {
      stopping.abort();
      await disposal.disposeAsync();
      await parts.followedBuilds.settled();
    },
  };
}
