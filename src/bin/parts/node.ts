import { filesDirOf } from '../../api/installation/data-directory.ts';
import { claimInstallation, type Installation } from '../../node/installation.ts';
import { userIdOf } from '../../base/process/part-users.ts';
import { AtollError } from '../../base/error.ts';
import { createLog } from '../../base/telemetry/log.ts';
import { gateLease } from '../../gate/gate-memory.ts';
import { runPart } from '../../supervisor/inside.ts';
import { draftsOverWire, memoryOverWire, volumesOverWire } from '../../wire/pause-copy.ts';
import { forgetOtherPrograms, type Programs } from '../platform/programs.ts';
import type { Settings } from '../settings/settings.ts';
import { type InstallationPlace, makeSocketFolder, socketsIn } from './sockets.ts';

// The node: the only part that runs as root. It opens no port and reads nothing from the internet.

/** Settings of the node, from the supervisor. */
export type NodeSettings = {
  settings: Settings;
  nodeId: string;
  environment: Record<string, string>;
  /** In a cluster: only this machine's gate calls the node. */
  isForGate: boolean;
  programs: Programs;
};

/** How long to wait for the previous node to end after its supervisor was killed. Milliseconds. */
const claimTimeoutMs = 15_000;

runPart<NodeSettings>(async ({ settings, nodeId, environment, isForGate, programs }, control) => {
  const log = createLog(settings.logLevel, text => void process.stderr.write(text)).with({ part: 'node' });
  const claim = await claimed(settings.dataDir);
  forgetOtherPrograms(settings.dataDir, programs);
  const place: InstallationPlace = { installation: claim.number, runDir: claim.runDir };
  const userOf = (part: 'api' | 'edge') => userIdOf(isForGate ? 'gate' : part, claim.number);
  const users = { api: userOf('api'), edge: userOf('edge') };
  makeSocketFolder(claim.runDir, users);
  // The other parts load while this one does.
  const [own, { shippedOnNode }, { openLayerCache }, { layerExchange }, { uploadExchange }, { serveNode }] =
    await Promise.all([
      import('../own-node.ts'),
      import('../shipped-node.ts'),
      import('../../node/layers/shared-cache.ts'),
      import('../../node/layers/exchange.ts'),
      import('../../node/builds/cache/upload-exchange.ts'),
      import('../../wire/node-service.ts'),
      control.ask('others', place),
    ]);
  const { poolSize } = settings;
  const sockets = socketsIn(claim.runDir);
  const node = await own.startOwnNode({
    settings,
    log,
    nodeId,
    poolSize,
    programs,
    onLost: control.fail,
    installation: claim,
    // The gate asks when a call comes, which may be long before processes run.
    ...(isForGate && { requireLease: gateLease(sockets.heard).require }),
  });
  const cache = openLayerCache(settings.cacheDir, node.layers);
  const shipped = shippedOnNode({ layers: node.layers, cache, settings, environment, onPhase: control.phase });
  const served = [
    serveNode(
      {
        node: node.protocol,
        builds: node.builds,
        shipped,
        // Data from other machines is trusted from here on: root maps it as memory and mounts it as disks. A single
        // machine accepts nothing of that kind from anybody.
        ...(isForGate && {
          layers: layerExchange(node.layers, node.space, cache),
          pauses: memoryOverWire(node.pauses),
          drafts: draftsOverWire(node.drafts),
          snapshots: memoryOverWire(node.snapshots),
          volumeCopies: volumesOverWire(node.volumeCopies),
          uploads: uploadExchange(filesDirOf(settings.dataDir), node.space),
        }),
      },
      { path: sockets.nodeForApi, caller: 'api', uid: users.api },
      log,
    ),
    serveNode({ node: node.protocol }, { path: sockets.nodeForEdge, caller: 'edge', uid: users.edge }, log),
  ];
  return {
    about: {},
    async stop() {
      for (const { stop } of served) stop();
      await node.stop();
    },
  };
});

/** Claims the data directory. A process that is being killed may still hold it for a moment. */
async function claimed(dataDir: string): Promise<Installation> {
  for (const deadline = performance.now() + claimTimeoutMs; ;) {
    try {
      return claimInstallation(dataDir);
    } catch (error) {
      if (!(error instanceof AtollError) || error.code !== 'conflict' || performance.now() > deadline) throw error;
      await Bun.sleep(50);
    }
  }
}
