import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { userIdOf } from '../../base/part-users.ts';
import { AtollError } from '../../base/error.ts';
import { createLog } from '../../base/log.ts';
import { runPart } from '../../supervisor/inside.ts';
import { serveNode } from '../../wire/node-service.ts';
import { apiFolders } from '../data-directory.ts';
import { startOwnNode } from '../own-node.ts';
import type { Settings } from '../settings.ts';
import { shippedOnNode } from '../shipped-node.ts';
import { type NodeAbout, socketsIn } from './about.ts';

// The node: the only part that runs as root. It opens no port and reads nothing of the internet.

export type NodeSettings = { settings: Settings; nodeId: string; environment: Record<string, string> };

/** How long to wait for the process before this one to be gone, after the supervisor before was killed. Milliseconds. */
const claimTimeoutMs = 5_000;

runPart<NodeSettings>(async ({ settings, nodeId, environment }, control) => {
  const log = createLog(settings.logLevel, text => void process.stderr.write(text)).with({ part: 'node' });
  const node = await claimed(() => startOwnNode({ settings, log, nodeId, poolSize: settings.poolSize, onLost: control.fail }));
  const { installation, runDir } = node;
  const users = { api: userIdOf('api', installation), edge: userIdOf('edge', installation) };
  const sockets = socketsIn(runDir);
  // The api's own sockets are for the edge, which is the group of their folder.
  mkdirSync(sockets.folder, { recursive: true });
  chownSync(sockets.folder, users.api, users.edge);
  chmodSync(sockets.folder, setGroup | ownerAllGroupPass);
  for (const name of apiFolders) mkdirSync(join(sockets.data, name), { recursive: true, mode: 0o700 });
  chownSync(sockets.data, users.api, users.api);
  const shipped = shippedOnNode({ layers: node.layers, settings, environment, onPhase: control.phase });
  const served = [
    serveNode({ node: node.protocol, builds: node.builds, shipped }, { path: sockets.nodeForApi, caller: 'api', uid: users.api }, log),
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
  for (const deadline = performance.now() + claimTimeoutMs; ; ) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof AtollError) || error.code !== 'conflict' || performance.now() > deadline) throw error;
      await Bun.sleep(50);
    }
  }
}
