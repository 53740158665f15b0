import { totalmem } from 'node:os';
import type { CertificatePair } from '../../base/crypto/certificate.ts';
import { createLog, type Level } from '../../base/telemetry/log.ts';
import { userIdOf } from '../../base/process/part-users.ts';
import { followDirectory } from '../../edge/directory/follow-directory.ts';
import { outliveFaults } from '../../base/telemetry/faults.ts';
import { startEdge } from '../../edge/start.ts';
import { budgetsOf } from '../../supervisor/budgets.ts';
import { runPart } from '../../supervisor/inside.ts';
import { directoryAt } from '../../wire/directory-service.ts';
import { nodeAt } from '../../wire/node-service.ts';
import { openFilesMax, openFilesWanted } from '../settings/descriptors.ts';
import type { EdgeAbout } from '../../protocol/wire/part-about.ts';
import { clusterDial, ownDial } from './cluster-dial.ts';
import { socketsIn } from './sockets.ts';

// The edge: the part that faces the internet. It opens its ports, becomes a user that owns nothing, and holds no secret
// but its TLS certificate and the tokens of the running sandboxes.

/** Settings and secrets of the edge. They come from the supervisor; the edge reads none itself. */
export type EdgeSettings = {
  installation: number;
  runDir: string;
  logLevel: Level;
  host: string;
  port: number;
  trustForwarded: boolean;
  /** Sandboxes are on the machines of a cluster. */
  isControl: boolean;
  /** Undefined: no TLS port. */
  tls: { port: number; certificate: CertificatePair } | undefined;
};

/** The certificate was replaced. */
export type EdgeUpdate = { certificate: CertificatePair };

/** Interval at which the edge reports its open connections to the api. */
const reportMs = 1_000;

runPart<EdgeSettings, EdgeUpdate>(
  async ({ installation, runDir, logLevel, host, port, trustForwarded, isControl, tls }, control) => {
    const log = createLog(logLevel, text => void process.stderr.write(text)).with({ part: 'edge' });
    const sockets = socketsIn(runDir);
    const api = directoryAt(sockets.directory);
    const { dial, farEnds, close } = isControl
      ? clusterDial(api, sandboxId => followed.directory.find(sandboxId), log)
      : ownDial(nodeAt(sockets.nodeForEdge));
    const certificate = { current: tls?.certificate ?? { certificate: '', key: '' } };
    const edge = startEdge({
      hostname: host,
      port,
      apiSocketPath: sockets.api,
      directory: {
        find: sandboxId => followed.directory.find(sandboxId),
        running: () => followed.directory.running(),
        wake: (sandboxId, signal) => followed.directory.wake(sandboxId, signal),
      },
      dial,
      ...(farEnds && { farEnds }),
      trustForwardedHeaders: trustForwarded,
      descriptorsMax: openFilesMax(openFilesWanted[isControl ? 'carried' : 'direct']),
      memoryBytesMax: budgetsOf(totalmem()).edge.memoryBytes,
      ...(tls && { tls: { hostname: host, port: tls.port, certificate } }),
      log,
    });
    control.becomeUser(userIdOf('edge', installation));
    // Only now: the others ask the kernel which user connects.
    const followed = followDirectory(api, closed => edge.closed(closed), log);
    const reporting = setInterval(() => void api.report(edge.stats()).catch(() => {}), reportMs);
    outliveFaults(log, 'the edge');
    const about: EdgeAbout = { port: edge.port, tlsPort: edge.tlsPort };
    return {
      about,
      async stop() {
        clearInterval(reporting);
        await edge.stop();
        followed.stop();
        api.close();
        close();
      },
      update: update => void (certificate.current = update.certificate),
    };
  },
);
