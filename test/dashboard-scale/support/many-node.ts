import { AtollError } from '../../../src/base/error.ts';
import type { CreateSandbox, ExecutionRef, NodeInfo, NodeSandbox } from '../../../src/protocol/node.ts';
import type { SampleRange, SandboxSample } from '../../../src/protocol/node-usage.ts';
import { FakeNode } from '../../api/fake-node.ts';

const sampleEverySeconds = 5;
const gibibyte = 1024 ** 3;

/** A node without a machine that has any number of sandboxes, in memory: reading thousands of files would be slow. */
export class ManyNode extends FakeNode {
  readonly #running = new Map<string, NodeSandbox>();

  override async info(): Promise<NodeInfo> {
    return { ...(await super.info()), cpuCount: 10_000, memoryBytes: 2 ** 50, sandboxesMax: 1_000_000 };
  }

  override async create({ sandboxId, executionId, resources }: CreateSandbox): Promise<NodeSandbox> {
    const sandbox = { sandboxId, executionId, resources, startedAtMs: Date.now(), diskFailed: false };
    this.#running.set(executionId, sandbox);
    return sandbox;
  }

  override async kill({ executionId }: ExecutionRef): Promise<void> {
    this.#running.delete(executionId);
  }

  override async pause(): Promise<never> {
    throw new AtollError('precondition', 'sandboxes of this node are not paused');
  }

  override executions(): NodeSandbox[] {
    return [...this.#running.values()];
  }

  override async samples(sandboxId: string, { startSeconds, endSeconds, pointsMax }: SampleRange) {
    const count = Math.min(pointsMax, Math.floor((endSeconds - startSeconds) / sampleEverySeconds));
    return Array.from({ length: Math.max(0, count) }, (_, index) =>
      sampleAt(sandboxId, endSeconds - (count - 1 - index) * sampleEverySeconds),
    );
  }

  override async latestSamples(sandboxIds: string[]): Promise<Record<string, SandboxSample>> {
    const now = Math.floor(Date.now() / 1000 / sampleEverySeconds) * sampleEverySeconds;
    return Object.fromEntries(sandboxIds.map(sandboxId => [sandboxId, sampleAt(sandboxId, now)]));
  }
}

/** A plausible made-up sample: a wave with a different phase for each sandbox. */
function sampleAt(sandboxId: string, atSeconds: number): SandboxSample {
  const wave = (1 + Math.sin(atSeconds / 60 + Bun.hash.crc32(sandboxId))) / 2;
  return {
    atSeconds,
    cpuCount: 2,
    cpuUsedPct: Math.round(wave * 1000) / 10,
    memUsed: Math.round(wave * gibibyte),
    memTotal: gibibyte,
    memCache: 0,
    diskUsed: gibibyte,
    diskTotal: 5 * gibibyte,
  };
}
