import { silentLog } from '../../../src/base/telemetry/log.ts';
import { startEdge } from '../../../src/edge/start.ts';
import { dialLoopback } from './loopback-dial.ts';

// An edge in a process of its own, so that its memory is its own: every sandbox runs, and its ports are the loopback's.
const ingress = {
  trafficAccessToken: null,
  accessToken: null,
  maskRequestHost: null,
  httpsPorts: [],
  autoResume: false,
};
const edge = startEdge({
  hostname: '127.0.0.1',
  port: 0,
  apiSocketPath: '/nowhere/api.sock',
  log: silentLog,
  directory: {
    find: sandboxId => ({ sandboxId, teamId: 't', executionId: 'e', nodeId: 'n', state: 'running', ingress }),
    running: () => [],
    wake: () => Promise.reject(new Error('nothing sleeps here')),
  },
  dial: async (_, port) => dialLoopback(port),
});
process.stdout.write(`${edge.port}\n`);
