import { silentLog } from '../../../src/base/telemetry/log.ts';
import { AtollError } from '../../../src/base/error.ts';
import { outliveFaults } from '../../../src/base/telemetry/faults.ts';
import { startEdge } from '../../../src/edge/start.ts';
import { dialLoopback } from './loopback-dial.ts';

// An edge in a separate process, with its own memory and end: every sandbox runs, and its ports are the loopback's. A
// request to a sandbox called `faulty` makes the edge fail at something.
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
  async dial(sandboxId, port) {
    if (sandboxId !== 'faulty') return dialLoopback(port);
    setTimeout(() => {
      throw new Error('thrown where nobody catches it');
    });
    void Promise.reject(new Error('rejected where nobody hears of it'));
    throw new AtollError('not_found', 'it has only done harm');
  },
});
outliveFaults(silentLog, 'the edge');
process.stdout.write(`${edge.port}\n`);
