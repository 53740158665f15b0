import { messageOf } from '../base/error.ts';
import { reconcileBuilds } from './build/rules/follow.ts';
import { auditBacklogIntervalMs } from './event/rules/audit-backlog.ts';
import { auditPruneIntervalMs, reconcileAudit } from './event/rules/audit.ts';
import { eventsPruneIntervalMs, reconcileEvents } from './event/rules/events.ts';
import { collectIntervalMs, storeKeeping } from './blob/reconcilers/collect.ts';
import { logUploadIntervalMs, storeLogs } from './blob/reconcilers/logs.ts';
import { memoryUploadIntervalMs, storeMemories } from './blob/reconcilers/memory.ts';
import { layerKeeping, layerUploadIntervalMs } from './blob/reconcilers/layers.ts';
import { beatIntervalMs, reconcileMachines } from './cluster/reconcilers/beat.ts';
import { noticeTimeline } from './database/timeline.ts';
import { adoptionIntervalMs, reconcileNodes } from './sandbox/reconcilers/adoption.ts';
import { reconcileClock } from './sandbox/reconcilers/clock.ts';
import { ends, expiryIntervalMs } from './sandbox/reconcilers/expiry.ts';
import { leftoversIntervalMs, reconcileLeftovers } from './sandbox/reconcilers/leftovers.ts';
import { keysIntervalMs, reconcileKeys } from './sandbox/reconcilers/idempotency.ts';
import { renewalIntervalMs, tokenRenewal } from './sandbox/reconcilers/token-renewal.ts';
import { buildsIntervalMs, layersIntervalMs, reconcileLayers } from './build/reconcilers/layers.ts';
import { buildRetentionIntervalMs, reconcileBuildRetention } from './build/reconcilers/retention.ts';
import { cordonsIntervalMs, reconcileCordons } from './operator/reconcilers/cordons.ts';
import { drains, drainsIntervalMs } from './operator/reconcilers/drains.ts';
import { stuckIntervalMs, watchChanges } from './operator/rules/stuck.ts';
import { snapshotKeeping, snapshotsIntervalMs } from './snapshot/reconcilers/memory.ts';
import { nodeSamplesIntervalMs, sampleNodes } from './metrics/reconcilers/nodes.ts';
import { metricsPruneIntervalMs, pruneMetrics, teamMetricsIntervalMs, teamWatch } from './metrics/reconcilers/team.ts';
import type { MetricsRetention } from './metrics/reconcilers/team.ts';
import { volumeCopiesIntervalMs, volumeKeeping } from './volume/reconcilers/copies.ts';
import { reconcileVolumes, volumesIntervalMs } from './volume/reconcilers/removals.ts';
import { startLoop } from '../base/concurrency/loop.ts';
import type { Loop } from '../base/concurrency/loop.ts';
import type { ApiParts } from './parts.ts';

/**
 * Delay after which changes that no request waits for, e.g. an automatic pause, survive a loss of power. Milliseconds.
 */
const durabilityIntervalMs = 1_000;

const firstAdoptionRetryMs = 500;
const flushUsesIntervalMs = 10_000;

/** Takes over what the last run left, then keeps the standing truths. */
export async function startReconcilers(
  parts: ApiParts,
  ready: { adopted: boolean },
  retention: MetricsRetention,
): Promise<Loop[]> {
  const { log } = parts;
  const adopt = async () => {
    await noticeFailover(parts);
    await reconcileNodes(parts, !ready.adopted);
    ready.adopted = true;
  };
  const { authority, cordoned, machines } = parts;
  const reach = async () =>
    void (authority && machines && (await reconcileMachines({ ...parts, authority, machines })));
  await reach().catch(error => log.warn('machines are called again', { error: messageOf(error) }));
  await reconcileLeftovers(parts).catch(error => log.warn('leftovers are tried again', { error: messageOf(error) }));
  await adopt().catch(error => log.warn('adoption is tried again', { error: messageOf(error) }));
  const expiry = ends(parts);
  const emptied = drains(parts);
  const onRun = (name: string, outcome: 'ok' | 'failed') => parts.measures.reconciled(name, outcome);
  const loop = (name: string, intervalMs: () => number, run: () => Promise<void>) =>
    startLoop({ name, intervalMs, run, log, onRun });
  const every = (name: string, intervalMs: number, run: () => Promise<void>) => loop(name, () => intervalMs, run);
  const adoptionMs = () => (ready.adopted ? adoptionIntervalMs : firstAdoptionRetryMs);
  return [
    loop(
      'replica',
      () => parts.replica.beatIntervalMs,
      () => beat(parts),
    ),
    ...(machines ? [every('machines', beatIntervalMs, reach)] : []),
    ...storeLoops(parts, every),
    ...volumeLoops(parts, every),
    ...(cordoned ? [every('cordons', cordonsIntervalMs, () => reconcileCordons({ ...parts, cordoned }))] : []),
    loop('adoption', adoptionMs, adopt),
    every('leftovers', leftoversIntervalMs, () => reconcileLeftovers(parts)),
    every('builds', buildsIntervalMs, () => reconcileBuilds(parts)),
    every('build-retention', buildRetentionIntervalMs, () => reconcileBuildRetention(parts)),
    every('layers', layersIntervalMs, () => reconcileLayers(parts)),
    every('snapshots', snapshotsIntervalMs, snapshotKeeping(parts)),
    every('identity-tokens', renewalIntervalMs, tokenRenewal(parts)),
    every('volumes', volumesIntervalMs, () => reconcileVolumes(parts)),
    thenSettled(
      every('expiry', expiryIntervalMs, () => reconcileClock(parts).then(expiry.round)),
      expiry.settled,
    ),
    thenSettled(every('drains', drainsIntervalMs, emptied.round), emptied.settled),
    every('stuck', stuckIntervalMs, () => watchChanges(parts)),
    every('events', eventsPruneIntervalMs, () => reconcileEvents(parts)),
    every('idempotency-keys', keysIntervalMs, () => reconcileKeys(parts)),
    every('durability', durabilityIntervalMs, parts.flushed),
    every('audit-backlog', auditBacklogIntervalMs, () => parts.auditBacklog.flush(parts.db)),
    every('audit', auditPruneIntervalMs, () => reconcileAudit(parts)),
    every('team-metrics', teamMetricsIntervalMs, teamWatch(parts)),
    every('node-metrics', nodeSamplesIntervalMs, () => sampleNodes(parts)),
    every('metrics-retention', metricsPruneIntervalMs, () => pruneMetrics(parts, retention)),
    every('credential-uses', flushUsesIntervalMs, () => parts.credentials.flushUses()),
  ];
}

/** The loops that look after the store of a cluster. */
function storeLoops(
  parts: ApiParts,
  every: (name: string, intervalMs: number, run: () => Promise<void>) => Loop,
): Loop[] {
  const { store, machines, durableSnapshots, storedLogs } = parts;
  if (!store || !machines || !durableSnapshots || !storedLogs) return [];
  return [
    every('store', collectIntervalMs, storeKeeping({ ...parts, store })),
    every('store-layers', layerUploadIntervalMs, layerKeeping({ ...parts, store, machines })),
    every('store-logs', logUploadIntervalMs, () => storeLogs({ ...parts, storedLogs })),
    every('store-memories', memoryUploadIntervalMs, () => storeMemories({ ...parts, machines, durableSnapshots })),
  ];
}

/** The loops that look after the volumes of a cluster. */
function volumeLoops(
  parts: ApiParts,
  every: (name: string, intervalMs: number, run: () => Promise<void>) => Loop,
): Loop[] {
  const { machines, volumeCopies } = parts;
  if (!machines || !volumeCopies) return [];
  const keeping = volumeKeeping({ ...parts, machines, volumeCopies });
  return [thenSettled(every('volume-copies', volumeCopiesIntervalMs, keeping.round), keeping.settled)];
}

async function beat({ replica, syncClock }: Pick<ApiParts, 'replica' | 'syncClock'>): Promise<void> {
  await syncClock();
  await replica.beat();
}

/** Logs once that the database is now on another server. */
async function noticeFailover({ clock, db, log }: Pick<ApiParts, 'clock' | 'db' | 'log'>): Promise<void> {
  const found = await noticeTimeline(db, clock());
  if (found?.isNew)
    log.warn(
      'the database went over to another server, or came from a backup: what it does not know is kept and shown by ' +
        '`atoll sandbox orphans`',
      found.timeline,
    );
}

/** A loop that has stopped only when the work that its rounds began has settled too. */
function thenSettled(loop: Loop, settled: () => Promise<void>): Loop {
  return { wake: loop.wake, stop: () => loop.stop().then(settled) };
}
