import { silentLog } from '../../src/base/log.ts';
import { startEdge } from '../../src/edge/start.ts';
import { dialLoopback } from '../../test/edge/support/loopback-dial.ts';

// The edge alone in a process; its one sandbox `bench` has the loopback's ports.
const [certFile = '', keyFile = ''] = process.argv.slice(2);
const ingress = { trafficAccessToken: null, accessToken: null, maskRequestHost: null, httpsPorts: [], autoResume: false };
const route = { sandboxId: 'bench', teamId: 't', executionId: 'e', state: 'running', ingress } as const;
const edge = startEdge({
  hostname: '127.0.0.1',
  port: 0,
  apiSocketPath: '/nowhere/api.sock',
  log: silentLog,
  directory: { find: () => route, wake: () => Promise.reject(new Error('nothing sleeps here')) },
  dial: async (_, port) => dialLoopback(port),
  tls: { hostname: '127.0.0.1', port: 0, certificate: { kind: 'files', certFile, keyFile } },
});
process.stdout.write(`${edge.port} ${edge.tlsPort}\n`);
