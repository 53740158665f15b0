import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../../../src/base/telemetry/log.ts';
import { startEdge } from '../../../../src/edge/start.ts';
import { dialLoopback } from '../../../edge/support/loopback-dial.ts';

// An edge and an API in one process that may hold few files. The first letter of a sandbox's ID is its team; every
// sandbox contains what listens on the loopback's port 7777.
const descriptorsMax = Number(process.argv[2]);
const folder = mkdtempSync(join(tmpdir(), 'shares-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.on('SIGTERM', () => process.exit(0));
const apiSocketPath = join(folder, 'api.sock');
Bun.serve({
  unix: apiSocketPath,
  fetch: async request => (await request.text(), Response.json({ path: new URL(request.url).pathname })),
});
const ingress = {
  trafficAccessToken: null,
  accessToken: null,
  maskRequestHost: null,
  httpsPorts: [],
  autoResume: false,
};
const edge = startEdge({
  hostname: '0.0.0.0',
  port: 0,
  apiSocketPath,
  log: silentLog,
  descriptorsMax,
  directory: {
    find: sandboxId => ({
      sandboxId,
      teamId: sandboxId.slice(0, 1),
      executionId: 'e',
      nodeId: 'n',
      state: 'running',
      ingress,
    }),
    running: () => [],
    wake: () => Promise.reject(new Error('nothing sleeps here')),
  },
  dial: async () => dialLoopback(7777),
});
process.stdout.write(`${edge.port}\n`);
