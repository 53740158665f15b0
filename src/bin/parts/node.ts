import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { layerExchange } from '../../node/layers/exchange.ts';
import { userIdOf } from '../../base/process/part-users.ts';
import { AtollError } from '../../base/error.ts';
import { createLog } from '../../base/telemetry/log.ts';
import { runPart } from '../../supervisor/inside.ts';
import { serveNode } from '../../wire/node-service.ts';
import { apiFolders } from '../../api/installation/data-directory.ts';
import { startOwnNode } from '../own-node.ts';
import type { Settings } from '../settings/settings.ts';
import { shippedOnNode } from '../shipped-node.ts';
import { type NodeAbout, socketsIn } from './about.ts';

// The node: the only part that runs as root. It opens no port and reads nothing of the internet.

/** Settings of the node, from the supervisor. */
export type NodeSettings = {
  settings: Settings;
  nodeId: string;
  environment: Record<string, string>;
  /** Of a cluster: the gate of this machine is its one caller. */
  isForGate: boolean;
};

/** Longest wait for the previous node to end, after its supervisor was killed. Milliseconds. */
const claimTimeoutMs = 5_000;

runPart<NodeSettings>(async ({ settings, nodeId, environment, isForGate }, control) => {
  const log = createLog(settings.logLevel, text => void process.stderr.write(text)).with({ part: 'node' });
  const node = await claimed(() =>
    startOwnNode({ settings, log, nodeId, poolSize: settings.poolSize, onLost: control.fail }),
  );
  const { installation, runDir } = node;
  const userOf = (part: 'api' | 'edge') => userIdOf(isForGate ? 'gate' : part, installation);
  const users = { api: userOf('api'), edge: userOf('edge') };
  const sockets = socketsIn(runDir);
  // The api's own sockets are for the edge, which is the group of their folder.
  mkdirSync(sockets.folder, { recursive: true });
  chownSync(sockets.folder, users.api, users.edge);
  chmodSync(sockets.folder, setGroup | ownerAllGroupPass);
  for (const name of apiFolders) mkdirSync(join(sockets.data, name), { recursive: true, mode: 0o700 });
  chownSync(sockets.data, users.api, users.api);
  const shipped = shippedOnNode({ layers: node.layers, settings, environment, onPhase: control.phase });
  const served = [
    serveNode(
      { node: node.protocol, builds: node.builds, shipped, layers: layerExchange(node.layers, settings.dataDir) },
      { path: sockets.nodeForApi, caller: 'api', uid: users.api },
      log,
    ),
    serveNode({ node: node.protocol }, { path: sockets.nodeForEdge, caller: 'edge', uid: users.edge }, log),
  ];
  const about: NodeAbout = { installation, runDir, helperPid: node.helperPid };
  return {
    about,
    async stop() {
      for (const { stop } of served) stop();
      await node.stop();
    },
  };
});

const setGroup = 0o2000;
const ownerAllGroupPass = 0o710;

/** A data directory is locked by one process. One that is being killed has it for a moment yet. */
async function claimed<T>(start: () => Promise<T>): Promise<T> {
  for (const deadline = performance.now() + claimTimeoutMs; ;) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof AtollError) || error.code !== 'conflict' || performance.now() > deadline) throw error;
      await Bun.sleep(50);
    }
  }
}
