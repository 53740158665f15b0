import { existsSync, mkdirSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { freeBytesOf } from '../../base/disk-room.ts';
import { unlessAborted } from '../../base/concurrency/unless-aborted.ts';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { readIfThere, readOrMake } from '../../base/small-file.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { claimInstallation } from '../../node/installation.ts';
import { makeRoomToStart } from '../../node/space/ballast.ts';
import { budgetsOf } from '../../supervisor/budgets.ts';
import { makePartGroups } from '../../supervisor/control-groups.ts';
import type { Part } from '../../supervisor/part.ts';
import { RestartCounts } from '../../supervisor/restart-counts.ts';
import type { NodeIdentity } from '../../wire/tls/listen-tls.ts';
import { forgetInstance, recordInstance, requireNoInstance } from '../platform/instance.ts';
import type { GateSettings, GateUpdate } from '../parts/gate.ts';
import type { InstallationPlace } from '../parts/sockets.ts';
import { requireAuthorities } from '../preflight/authorities.ts';
import { requireRole } from '../preflight/role.ts';
import { assertDriversThere } from '../platform/platform.ts';
import { takePriority } from '../platform/priority.ts';
import { beginGate, beginNode } from '../platform/platform-parts.ts';
import { beginWith } from '../platform/begin-parts.ts';
import type { Settings } from '../settings/settings.ts';
import { joinAsPod, joinCluster, keepMachineIdentity, readMachineIdentity } from './join.ts';

/** What starting a machine of a cluster takes. */
type MachineOptions = {
  settings: Settings;
  log: Log;
  environment: Record<string, string>;
  onPhase(phase: string): void;
  /**
   * For a machine that has not joined yet: the URL of any control process and the token of an invitation, or the file
   * with the token of this pod's service account.
   */
  invitation: Invitation | undefined;
  signal: AbortSignal;
};

type Invitation = { control: string; token: string } | { control: string; podTokenFile: string };

const stopped = 'The start was interrupted.';

/** A machine that serves its cluster. Disposing of it ends it; its sandboxes run on. */
type RunningMachine = AsyncDisposable & { nodeId: string; address: string; failed: Promise<never> };

/**
 * Starts this machine as a node of a cluster: the node, and the gate that control connects to. It has no database and
 * no seed.
 */
export async function startMachine(options: MachineOptions): Promise<RunningMachine> {
  const { settings, environment, signal } = options;
  const { dataDir } = settings;
  const nodeAddress = addressOf(settings);
  requireRole(dataDir, 'node');
  requireNoInstance(dataDir);
  assertDriversThere(settings);
  requireAuthorities(settings);
  if (existsSync(dataDir)) makeRoomToStart(dataDir, freeBytesOf(dataDir));
  // A machine whose node has run before is not examined again, so that starts stay fast.
  if (!existsSync(join(dataDir, 'node', 'sandboxes'))) {
    const { requireAbleHost } = await import('../preflight/able-host.ts');
    await unlessAborted(requireAbleHost(settings), signal, stopped);
  }
  takePriority();
  const who = whoIs(settings);
  const { nodeId, address } = who;
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {}); // a caller may begin to wait after the failure
  await using started = new AsyncDisposableStack();
  const groups = started.use(makePartGroups(budgetsOf(totalmem())));
  const restarts = new RestartCounts();
  const parts: { gate?: Part<unknown> } = {};
  const begin = beginWith(started, {
    ...options,
    onRestart(name, reason) {
      restarts.count(name, reason);
      parts.gate?.update({ restarts: restarts.counts() } satisfies GateUpdate);
    },
    onGivenUp: failed.reject,
  });
  const served = <About>(part: Part<About>) => unlessAborted(part.ready, signal, stopped);
  const claimed = Promise.withResolvers<InstallationPlace>();
  const common = { settings, environment, groups, identity: { nodeId } };
  // Control trusts the latest to join: a mere attempt to start must not shut out a machine that runs on this directory.
  const joined = claimed.promise.then(() =>
    unlessAborted(identityOf(dataDir, options.invitation, who), signal, stopped),
  );
  joined.catch(() => {}); // the node is told to wait for it, and the failure may come before anybody here waits
  const nodeServes = served(
    beginNode(begin, common, {
      isForGate: true,
      onClaimed(place) {
        claimed.resolve(place);
        return joined;
      },
    }),
  );
  const { installation, runDir } = await Promise.race([claimed.promise, nodeServes.then(() => claimed.promise)]);
  started.defer(() => forgetInstance(dataDir));
  recordInstance(dataDir);
  let identity = await joined;
  await nodeServes;
  const { logLevel, nodeLabels: labels = {}, cpuOvercommit } = settings;
  const said = { labels, cpuOvercommit };
  const place = { installation, runDir, logLevel, ...nodeAddress };
  const gateSettings = (): GateSettings => ({ ...place, identity, ...said, restarts: restarts.counts() });
  parts.gate = beginGate(begin, { groups }, gateSettings, next => {
    identity = next;
    keepMachineIdentity(dataDir, next);
  });
  await served(parts.gate);
  const disposal = started.move();
  return { nodeId, address, failed: failed.promise, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

/**
 * Makes this machine join the cluster before its service is started: a service is restarted again and again, but a
 * token works once. Takes nothing from a machine that runs. Errors: those of `joinCluster`; `precondition` if it has
 * neither joined nor an invitation; `conflict` if it has an invitation but runs already.
 */
export async function joinBefore(settings: Settings, invitation: Invitation | undefined): Promise<void> {
  const { dataDir } = settings;
  addressOf(settings);
  requireRole(dataDir, 'node');
  if (!invitation) return void (await identityOf(dataDir, undefined, { nodeId: '', address: '' }));
  requireNoInstance(dataDir);
  const { unlock } = claimInstallation(dataDir);
  try {
    await identityOf(dataDir, invitation, whoIs(settings));
  } finally {
    unlock();
  }
}

function addressOf({ nodeAddress }: Settings): { host: string; port: number } {
  if (nodeAddress) return nodeAddress;
  throw new AtollError(
    'invalid',
    'ATOLL_NODE_ADDRESS is not set: it is the host:port at which control reaches this machine.',
  );
}

function whoIs(settings: Settings): { nodeId: string; address: string } {
  const { dataDir } = settings;
  const { host, port } = addressOf(settings);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  return { nodeId: readOrMake(join(dataDir, 'node-id'), () => newUuid()), address: `${host}:${port}` };
}

/**
 * A machine that has joined needs no token; with a new token it joins again, e.g. at another address. A pod joins at
 * each start, and keeps its identity if control does not answer.
 */
async function identityOf(
  dataDir: string,
  invitation: Invitation | undefined,
  { nodeId, address }: { nodeId: string; address: string },
): Promise<NodeIdentity> {
  const known = readMachineIdentity(dataDir);
  if (!invitation) {
    if (known) return known;
    throw new AtollError(
      'precondition',
      'This machine has not joined a cluster: give --control URL and --token TOKEN (`atoll cluster invite` prints ' +
        'one).',
    );
  }
  const joined =
    'token' in invitation
      ? await joinCluster({ ...invitation, nodeId, address, known })
      : await joinAsPod({
          control: invitation.control,
          podToken: readIfThere(invitation.podTokenFile) ?? '',
          nodeId,
          address,
          known,
        }).catch((error: unknown) => {
          if (known && error instanceof AtollError && error.code === 'unavailable') return known;
          throw error;
        });
  keepMachineIdentity(dataDir, joined);
  return joined;
}
