import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newSandboxId, newUuid } from '../../../src/base/id.ts';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import type { BuildSettings } from '../../../src/node/builds/compose.ts';
import type { Node } from '../../../src/node/start/options.ts';
import { startNode } from '../../../src/node/start/start.ts';
import type { CreateSandbox, ExecutionRef, NodeProtocol, ResumeSandbox } from '../../../src/protocol/node.ts';
import type { DriverName } from '../../../src/protocol/driver.ts';
import { ensureBaseLayer } from '../../support/base-layer.ts';
import { wiredNode } from '../../wire/support/wired-node.ts';

const root = join(import.meta.dir, '../../..');
export const testResources = { cpuCount: 2, memoryMiB: 512, diskMiB: 512 };

export type TestNode = {
  dataDir: string;
  /** Digest of the base template's layer. */
  base: string;
  node: Node;
  /** A request for a sandbox made from the base layer. */
  request(changes?: Partial<CreateSandbox>): CreateSandbox;
  /** Resumes a paused sandbox; by default with its memory. */
  resume(paused: ExecutionRef, changes?: Partial<ResumeSandbox>): ReturnType<NodeProtocol['resume']>;
  /** Stops the node, sandboxes running on, and starts another on the same data. */
  restart(): Promise<void>;
  dispose(): Promise<void>;
};

/**
 * A separate node for one test file, called over unix sockets as the api and the edge do, with this machine's base
 * layer; with `memory`, one that can keep memory.
 */
export async function startTestNode(
  options: {
    poolSize?: number;
    helperBinary?: string;
    memory?: boolean;
    driver?: DriverName;
    builds?: Partial<BuildSettings>;
    requireLease?: () => void;
    diskWriteBytesPerSecond?: number;
  } = {},
): Promise<TestNode> {
  const dataDir = mkdtempSync(join(tmpdir(), 'atoll-node-'));
  const start = async () =>
    wiredNode(
      await startNode({
        nodeId: 'test',
        dataDir,
        helperBinary: options.helperBinary ?? process.env['TEST_HELPER'] ?? join(root, 'dist/helper'),
        agentDir: join(root, 'dist/agent'),
        builderDir: join(root, 'dist/builder'),
        nameservers: ['8.8.8.8'],
        pool: { size: options.poolSize ?? Number(process.env['ATOLL_POOL_SIZE'] ?? 0), resources: testResources },
        builds: { filesDir: join(dataDir, 'files'), imagesFile: join(dataDir, 'images.json'), ...options.builds },
        runscDir: join(root, 'dist/runsc'),
        ...(options.driver && { driver: options.driver }),
        ...(options.requireLease && { requireLease: options.requireLease }),
        ...(options.diskWriteBytesPerSecond && { diskWriteBytesPerSecond: options.diskWriteBytesPerSecond }),
        ...(options.memory && { criuDir: join(root, 'dist/criu') }),
        log: silentLog,
        onHelperLost: () => {
          throw new Error('the native helper has ended');
        },
      }),
    );
  const node = await start();
  const base = await ensureBaseLayer(node.layers);
  const test: TestNode = {
    dataDir,
    base,
    node,
    request: changes => ({
      sandboxId: newSandboxId(),
      executionId: newUuid(),
      image: {
        templateId: 'base',
        buildId: 'base',
        layers: [base],
        defaultUser: 'user',
        defaultWorkdir: '',
        buildEnv: {},
      },
      resources: testResources,
      network: { internetAccess: true },
      envVars: {},
      accessToken: null,
      ...changes,
    }),
    resume: ({ sandboxId, executionId }, changes) =>
      test.node.protocol.resume({
        sandboxId,
        executionId,
        nextExecutionId: newUuid(),
        memory: true,
        network: { internetAccess: true },
        envVars: {},
        accessToken: null,
        ...changes,
      }),
    async restart() {
      await test.node.stop();
      test.node = await start();
    },
    async dispose() {
      await test.node.down();
      rmSync(dataDir, { recursive: true });
    },
  };
  return test;
}
