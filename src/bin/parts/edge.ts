import type { CertificatePair } from '../../base/certificate.ts';
import { createLog, type Level } from '../../base/log.ts';
import { userIdOf } from '../../base/part-users.ts';
import { followDirectory } from '../../edge/follow-directory.ts';
import { startEdge } from '../../edge/start.ts';
import { runPart } from '../../supervisor/inside.ts';
import { directoryAt } from '../../wire/directory-service.ts';
import { nodeAt } from '../../wire/node-service.ts';
import { descriptorsOfEdge, openFilesMax } from '../descriptors.ts';
import { type EdgeAbout, socketsIn } from './about.ts';

// The edge: what the internet reaches. It opens its ports, becomes a user that owns nothing, and holds no secret but the certificate
// of its TLS port and the tokens of the sandboxes that run.

export type EdgeSettings = {
  installation: number;
  runDir: string;
  logLevel: Level;
  host: string;
  port: number;
  trustForwarded: boolean;
  /** Undefined: no TLS port. */
  tls: { port: number; certificate: CertificatePair } | undefined;
};

/** The certificate has been exchanged. */
export type EdgeUpdate = { certificate: CertificatePair };

/** How often the api is told what is open. */
const reportMs = 1_000;

runPart<EdgeSettings, EdgeUpdate>(async ({ installation, runDir, logLevel, host, port, trustForwarded, tls }, control) => {
  const log = createLog(logLevel, text => void process.stderr.write(text)).with({ part: 'edge' });
  const sockets = socketsIn(runDir);
  const [api, node] = [directoryAt(sockets.directory), nodeAt(sockets.nodeForEdge)];
  const certificate = { current: tls?.certificate ?? { certificate: '', key: '' }, refresh() {} };
  const edge = startEdge({
    hostname: host,
    port,
    apiSocketPath: sockets.api,
    directory: { find: sandboxId => followed.directory.find(sandboxId), wake: (sandboxId, signal) => followed.directory.wake(sandboxId, signal) },
    dial: (sandboxId, to, signal) => node.node.dial(sandboxId, to, signal),
    trustForwardedHeaders: trustForwarded,
    descriptorsMax: descriptorsOfEdge(openFilesMax()),
    ...(tls && { tls: { hostname: host, port: tls.port, certificate: { kind: 'given' as const, source: certificate } } }),
    log,
  });
  control.becomeUser(userIdOf('edge', installation));
  // Only now: the others ask the kernel who connects.
  const followed = followDirectory(api, closed => edge.closed(closed), log);
  const reporting = setInterval(() => void api.report(edge.stats()).catch(() => {}), reportMs);
  const about: EdgeAbout = { port: edge.port, tlsPort: edge.tlsPort };
  return {
    about,
    async stop() {
      clearInterval(reporting);
      await edge.stop();
      followed.stop();
      api.close();
      node.close();
    },
    update: update => void (certificate.current = update.certificate),
  };
});
