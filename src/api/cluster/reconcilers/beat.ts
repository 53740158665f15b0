import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { releaseRule, worksWith } from '../../../base/version.ts';
import type { BeatAnswer, ComingEnd } from '../../../protocol/cluster.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxDirectory } from '../../sandbox/directory/directory.ts';
import { comingEnds } from '../../sandbox/store/ends.ts';
import { type Authority, certificateDigest, renewAfterSeconds } from '../rules/authority.ts';
import { pauseRowsOf } from '../rules/give-up.ts';
import type { KnownMachine, Machines } from '../rules/machines.ts';
import { leaseSeconds, silentSeconds } from '../rules/lease.ts';
import {
  giveUpNodes,
  keepLeases,
  listClusterNodes,
  putCertificates,
  putNodeFacts,
  takeNodeBack,
} from '../store/nodes.ts';

/** Dependencies of keeping in touch with machines. */
type BeatDeps = {
  authority: Authority;
  clock: Clock;
  db: Db;
  directory: SandboxDirectory;
  isolationSeconds: number;
  log: Log;
  machines: Machines;
};

/** How often control beats each machine, ms. */
export const beatIntervalMs = 2_000;
/** How long one round waits for answers, ms: a machine that is cut off must not make the others wait for theirs. */
const roundWaitMs = 1_000;
/** A machine that has been silent for this long gets no requests, seconds. */
const unheardSeconds = 5;

/**
 * Tells every machine until when it may count on control. Concludes that the sandboxes of a machine that was silent for
 * too long are paused: the machine pauses them itself at that time, whether it hears anything or not.
 */
export async function reconcileMachines(deps: BeatDeps): Promise<void> {
  const known = deps.machines.update(await listClusterNodes(deps.db));
  const round = await beginRound(deps, known);
  // At most one beat per machine is under way; a late one ends in a later round.
  const beats = known.map(machine => deps.machines.beats.run(machine, () => beatOrLose(deps, machine, round)));
  await Promise.race([Promise.all(beats), Bun.sleep(roundWaitMs)]);
  await giveUpSilent(deps, known);
}

type Lease = { epoch: string; untilMs: number };

/** What one round tells the machines: read and written for all at once, as there may be a thousand. */
type Round = { nowUs: number; leases: ReadonlyMap<string, Lease>; ends: ReadonlyMap<string, ComingEnd[]> };

/**
 * The next lease counts from when the machine last spoke, on its own clock, and is in the database before it is given:
 * so it ends on the machine before control counts it as over. A machine that has not spoken, or was given up, gets
 * none.
 */
async function beginRound({ db, clock, isolationSeconds }: BeatDeps, known: readonly KnownMachine[]): Promise<Round> {
  const nowUs = clock();
  const heard = known.flatMap(({ node, heard }) => (heard && !node.isGivenUp ? [{ nodeId: node.nodeId, heard }] : []));
  const untilUs = nowUs + (leaseSeconds + silentSeconds(isolationSeconds)) * microsPerSecond;
  const [kept, ends] = await Promise.all([
    keepLeases(
      db,
      heard.map(({ nodeId, heard }) => ({ nodeId, untilUs: heard.atUs + leaseSeconds * microsPerSecond })),
    ),
    comingEnds(db, { nowUs, untilUs }),
  ]);
  const leases = heard.flatMap(({ nodeId, heard: { epoch, nowMs } }): [string, Lease][] =>
    kept.has(nodeId) ? [[nodeId, { epoch, untilMs: nowMs + leaseSeconds * 1000 }]] : [],
  );
  return { nowUs, leases: new Map(leases), ends };
}

/** One beat; a machine that is silent for too long gets no work from then on. */
async function beatOrLose(deps: BeatDeps, known: KnownMachine, round: Round): Promise<void> {
  try {
    await beat(deps, known, round);
  } catch (error) {
    const { nodeId } = known.node;
    known.isAnswering = false;
    const silentUs = deps.clock() - (known.heard?.atUs ?? 0);
    if (known.isUsable && silentUs < unheardSeconds * microsPerSecond) return;
    if (known.isUsable) deps.log.warn('a node is out of reach', { nodeId, error: messageOf(error) });
    deps.machines.setUsable(nodeId, false, deps.clock());
  }
}

async function beat(deps: BeatDeps, known: KnownMachine, round: Round): Promise<void> {
  const { db, clock, machines, isolationSeconds } = deps;
  const { nodeId, isGivenUp } = known.node;
  const lease = round.leases.get(nodeId) ?? null;
  const ends = round.ends.get(nodeId) ?? [];
  const answer = await known.machine.gate.beat({ lease, isolationSeconds, pauseFirst: isGivenUp, ends });
  known.heard = { epoch: answer.epoch, nowMs: answer.nowMs, atUs: clock() };
  machines.passed.heard(nodeId, answer);
  known.isAnswering = true;
  await recordFacts(deps, known, answer);
  if (isGivenUp && !answer.isPausing && answer.info.sandboxCount === 0) await takeNodeBack(db, nodeId);
  const isOurs = worksWith(answer.release);
  known.release = answer.release;
  if (!isOurs && known.isUsable)
    deps.log.warn(`a node gets no work: ${releaseRule}`, { nodeId, release: answer.release });
  const isUsable = isOurs && lease !== null && lease.epoch === answer.epoch && !answer.isPausing;
  machines.setUsable(nodeId, isUsable, known.heard.atUs);
  if (known.node.renewAtUs < round.nowUs && known.isUsable) await renew(deps, known);
}

async function recordFacts({ db }: BeatDeps, { node }: KnownMachine, { bootId, info }: BeatAnswer): Promise<void> {
  if (node.bootId === bootId && JSON.stringify(node.info) === JSON.stringify(info)) return;
  await putNodeFacts(db, node.nodeId, { bootId, info });
}

async function giveUpSilent(deps: BeatDeps, known: readonly KnownMachine[]): Promise<void> {
  const beforeUs = deps.clock() - silentSeconds(deps.isolationSeconds) * microsPerSecond;
  const silent = await giveUpNodes(deps.db, beforeUs);
  for (const nodeId of silent)
    deps.log.error('a node has been silent for too long: its sandboxes count as paused there', { nodeId });
  // Another process may have given up a machine and ended before it got to this step.
  const before = known.filter(({ node }) => node.isGivenUp).map(({ node }) => node.nodeId);
  for (const nodeId of new Set([...silent, ...before])) await pauseRowsOf(deps, nodeId);
}

/** The new certificate is recorded before the machine shows it, and the old one is kept until it does. */
async function renew({ authority, clock, db }: BeatDeps, { node, machine }: KnownMachine): Promise<void> {
  const certificate = authority.certifyNode(node.nodeId, await machine.gate.newKey());
  const certificates = [...node.certificates.slice(-1), certificateDigest(certificate)];
  const renewAtUs = clock() + renewAfterSeconds * microsPerSecond;
  if (await putCertificates(db, node, { certificates, renewAtUs })) await machine.gate.exchange(certificate);
}
