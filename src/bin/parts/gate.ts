import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ProcessRestarts } from '../../base/telemetry/process-restarts.ts';
import { createLog, type Level } from '../../base/telemetry/log.ts';
import { userIdOf } from '../../base/process/part-users.ts';
import { platformVersion } from '../../base/version.ts';
import { Gate, tickMs } from '../../gate/gate.ts';
import { hostUptimeMs, openGateMemory } from '../../gate/gate-memory.ts';
import { PendingKeys } from '../../gate/pending-keys.ts';
import type { MachineService } from '../../protocol/cluster.ts';
import { runPart } from '../../supervisor/inside.ts';
import { nodeAt, serveMachine } from '../../wire/node-service.ts';
import { overNetwork } from '../../wire/over-network.ts';
import type { NodeIdentity } from '../../wire/tls/listen-tls.ts';
import { socketsIn } from './sockets.ts';
import { transfersOf } from './transfers.ts';

// The gate of a machine in a cluster: the part that control reaches over the network. It runs as a user that owns
// nothing, and has the machine's certificate; the node itself opens no port.

/** Settings of the gate. They come from the supervisor; the gate reads none itself. */
export type GateSettings = {
  installation: number;
  runDir: string;
  logLevel: Level;
  /** Where it listens. */
  host: string;
  port: number;
  identity: NodeIdentity;
  labels: Record<string, string>;
  cpuOvercommit: number;
  /** How often the machine's parts were restarted. */
  restarts: ProcessRestarts[];
};

/** Restarts since. */
export type GateUpdate = Pick<GateSettings, 'restarts'>;

runPart<GateSettings, GateUpdate>(async (settings, control) => {
  const { installation, runDir, logLevel, host, port, identity, labels, cpuOvercommit } = settings;
  let { restarts } = settings;
  const log = createLog(logLevel, text => void process.stderr.write(text)).with({ part: 'gate' });
  const sockets = socketsIn(runDir);
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const [services, dialing] = [nodeAt(sockets.nodeForApi), nodeAt(sockets.nodeForEdge)];
  const { node, builds, shipped } = services;
  const memory = openGateMemory(sockets.heard);
  const said = { bootId, release: platformVersion, labels, cpuOvercommit };
  const gate = new Gate({ node, log, memory, nowMs: hostUptimeMs, ...said });
  const leased =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    (...args: Args) =>
      gate.underLease(() => call(...args));
  const transfers = transfersOf(services);
  const pending = new PendingKeys();
  const service: MachineService = {
    node: {
      ...node,
      usage: async () => ({ ...(await node.usage()), restarts }),
      dial: (sandboxId, to, signal) => dialing.node.dial(sandboxId, to, signal),
      create: leased(node.create),
      resume: leased(node.resume),
      snapshot: leased(node.snapshot),
      volumes: { ...node.volumes, ...overNetwork(node.volumes) },
    },
    builds: { ...builds, start: leased(builds.start) },
    shipped,
    layers: { ...services.layers, ...overNetwork(services.layers, (_, sizeBytes) => sizeBytes) },
    uploads: { ...services.uploads, ...overNetwork(services.uploads, (_, sizeBytes) => sizeBytes) },
    snapshots: { ...services.snapshots, openWrite: leased(services.snapshots.openWrite) },
    pauses: { ...services.pauses, openWrite: leased(services.pauses.openWrite) },
    drafts: { ...services.drafts, openWrite: leased(services.drafts.openWrite) },
    volumeCopies: { ...services.volumeCopies, openWrite: leased(services.volumeCopies.openWrite) },
    transfers: {
      ...transfers,
      receiveVolume: leased(transfers.receiveVolume),
      receivePause: leased(transfers.receivePause),
      receiveSnapshot: leased(transfers.receiveSnapshot),
    },
    gate: {
      beat: beat => gate.beat(beat),
      newKey: async () => pending.make(),
      async exchange(certificate) {
        const next = { ...identity, certificate, key: pending.keyOf(certificate) };
        served.exchange(next);
        await control.ask('certificate', next);
        pending.clear();
      },
    },
  };
  const served = serveMachine(service, { hostname: isIP(host) === 0 ? '0.0.0.0' : host, port, identity }, log);
  control.becomeUser(userIdOf('gate', installation));
  const ticking = setInterval(() => void gate.tick(), tickMs);
  return {
    about: {},
    update: update => void ({ restarts } = update),
    async stop() {
      clearInterval(ticking);
      served.stop();
      await gate.settled();
      services.close();
      dialing.close();
      memory[Symbol.dispose]();
    },
  };
});
