import { join } from 'node:path';
import { newSandboxId, newUuid } from '../../../src/base/id.ts';
import { parseDockerfile } from '../../../src/builder/dockerfile/parse.ts';
import { createLog } from '../../../src/base/telemetry/log.ts';
import { startNode } from '../../../src/node/start/start.ts';
import type { EgressPolicy } from '../../../src/protocol/network/network.ts';
import { runInSandbox } from '../../node/support/run-in-sandbox.ts';
import type { LabOptions } from './lab.ts';
import { serveRemote } from './rpc.ts';
import { ensureBaseLayer } from '../../support/base-layer.ts';

// The node of a lab, in the network namespace that stands for the machine.

const root = join(import.meta.dir, '../../..');
const [dataDir = '', settings = '{}'] = process.argv.slice(2);
const options = JSON.parse(settings) as LabOptions;
const resources = { cpuCount: 1, memoryMiB: 512, diskMiB: 512 };

await serveRemote(async () => {
  const lines: string[] = [];
  const intrusions: string[] = [];
  await startServices(intrusion => void intrusions.push(intrusion));
  const start = () =>
    startNode({
      nodeId: 'lab',
      dataDir,
      helperBinary: join(root, 'dist/helper'),
      agentDir: join(root, 'dist/agent'),
      runscDir: join(root, 'dist/runsc'),
      criuDir: join(root, 'dist/criu'),
      ...(options.driver && { driver: options.driver }),
      builderDir: join(root, 'dist/builder'),
      nameservers: options.nameservers ?? ['8.8.8.8'],
      egress: { ...options.egress, ...(options.roots !== undefined && { roots: options.roots }) },
      pool: { size: 0, resources },
      frozenMs: 0, // a resume is from the disk
      builds: { filesDir: join(dataDir, 'files'), ...(options.buildNetwork && { network: options.buildNetwork }) },
      log: createLog('info', line => void lines.push(line)),
      onHelperLost: () => {
        throw new Error('the native helper has ended');
      },
    });
  let node = await start();
  const base = await ensureBaseLayer(node.layers);
  const executions = new Map<string, string>();
  const refOf = (sandboxId: string) => ({ sandboxId, executionId: executions.get(sandboxId) ?? '' });
  return {
    operations: {
      async create(network: EgressPolicy) {
        const ref = { sandboxId: newSandboxId(), executionId: newUuid() };
        const image = {
          templateId: 'base',
          buildId: 'base',
          layers: [base],
          defaultUser: 'user',
          defaultWorkdir: '',
          buildEnv: {},
        };
        await node.protocol.create({ ...ref, image, resources, network, envVars: {}, accessToken: null });
        executions.set(ref.sandboxId, ref.executionId);
        return ref.sandboxId;
      },
      async update(sandboxId: string, network: EgressPolicy) {
        const startedAt = performance.now();
        await node.protocol.updateNetwork(refOf(sandboxId), network);
        return performance.now() - startedAt;
      },
      async pauseAndResume(sandboxId: string, network: EgressPolicy) {
        const before = refOf(sandboxId);
        await node.protocol.pause(before, { memory: true });
        const nextExecutionId = newUuid();
        const changes = { memory: true, network, envVars: {}, accessToken: null };
        const { from } = await node.protocol.resume({ ...before, nextExecutionId, ...changes });
        executions.set(sandboxId, nextExecutionId);
        return from;
      },
      kill: (sandboxId: string) => node.protocol.kill(refOf(sandboxId)),
      run: (sandboxId: string, command: string, user: string) => runInSandbox(node.protocol, sandboxId, command, user),
      async build(command: string, network?: 'none' | 'default') {
        const buildId = newUuid();
        const state = { layers: [base], env: {}, user: 'root', workdir: '' };
        const steps = [{ type: 'RUN', args: [command], force: false }];
        await node.builds.start({
          buildId,
          templateId: 't',
          teamId: 'team',
          ...(network
            ? {
                source: {
                  kind: 'dockerfile',
                  stages: parseDockerfile(`FROM base\nRUN --network=${network} ${command}`),
                  templates: { base: state },
                },
                steps: [],
              }
            : { source: { kind: 'state', state }, steps }),
          force: true,
          startsAsUser: false,
          resources,
        });
        for (let next = 0; ;) {
          const progress = await node.builds.progress(buildId, next, 1_000);
          next = progress.next;
          if (progress.result) return progress.result;
        }
      },
      traffic: (sandboxId: string) => node.protocol.traffic(refOf(sandboxId)),
      installation: () => node.installation,
      intrusions: () => intrusions.splice(0),
      logged: () => lines.splice(0),
      history: async (sandboxId: string) =>
        (await node.protocol.logs({ sandboxId, backward: false, limit: 1000 })).map(({ message }) => message),
      async restart() {
        await node.stop();
        node = await start();
      },
    },
    stop: async () => void (await node.down()),
  };
});

/** Services of the machine, on all its addresses, that no sandbox may reach. */
async function startServices(onIntrusion: (intrusion: string) => void): Promise<void> {
  const everywhere = options.ipv6 ? '::' : '0.0.0.0';
  for (const port of [22, 80, 443, 3000, 5432, 7000]) {
    Bun.listen({
      hostname: everywhere,
      port,
      socket: {
        open(socket) {
          onIntrusion(`port ${port} from ${socket.remoteAddress}`);
          socket.end('service of the host\n');
        },
        data() {},
        error() {},
      },
    });
  }
  // Takes the place of the platform's edge.
  Bun.serve({
    hostname: '127.0.0.1',
    port: 8088,
    fetch: (request, server) =>
      Response.json({
        ...Object.fromEntries(request.headers),
        path: new URL(request.url).pathname,
        from: server.requestIP(request)?.address,
      }),
  });
  for (const port of [53, 7000]) {
    await Bun.udpSocket({
      hostname: everywhere,
      port,
      socket: {
        data: (_, bytes, from, address) => onIntrusion(`datagram for port ${port} from ${address}:${from}: ${bytes}`),
      },
    });
  }
}
