import { readFileSync } from 'node:fs';
import { silentLog } from '../../src/base/telemetry/log.ts';
import { startEdge } from '../../src/edge/start.ts';
import { dialLoopback } from '../../test/edge/support/loopback-dial.ts';

// The edge alone in a process; its one sandbox `bench` has the loopback's ports.
const [certFile = '', keyFile = ''] = process.argv.slice(2);
const ingress = {
  trafficAccessToken: null,
  accessToken: null,
  maskRequestHost: null,
  httpsPorts: [],
  autoResume: false,
};
const route = { sandboxId: 'bench', teamId: 't', executionId: 'e', nodeId: 'n', state: 'running', ingress } as const;
const pair = { certificate: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
const edge = startEdge({
  hostname: '127.0.0.1',
  port: 0,
  apiSocketPath: '/nowhere/api.sock',
  log: silentLog,
  directory: {
    find: () => route,
    running: () => [route],
    wake: () => Promise.reject(new Error('nothing sleeps here')),
  },
  dial: async (_, port) => dialLoopback(port),
  tls: { hostname: '127.0.0.1', port: 0, certificate: { current: pair } },
});
process.stdout.write(`${edge.port} ${edge.tlsPort}\n`);
