import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../src/base/error.ts';
import type {
  CreateSandbox,
  ExecutionRef,
  NodeInfo,
  NodeProtocol,
  NodeSandbox,
  SandboxExit,
  TrafficCounters,
} from '../../src/protocol/node.ts';

/**
 * A node without machine for the tests of the API: its sandboxes are files of a directory, so that they outlive the process
 * like real ones. Every call can be made to fail or to take its time.
 */
export class FakeNode implements NodeProtocol {
  readonly created: CreateSandbox[] = [];
  /** Called before the work of each call; may wait or throw. */
  before: (call: 'create' | 'kill' | 'list', target: ExecutionRef | null, signal?: AbortSignal) => Promise<void> = async () => {};
  /** Called after the work of each call, before its answer. */
  after: (call: 'create' | 'kill' | 'list', target: ExecutionRef | null) => Promise<void> = async () => {};
  readonly #directory: string;
  readonly #listeners = new Set<(exit: SandboxExit) => void>();

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  async info(): Promise<NodeInfo> {
    return {
      nodeId: 'node-1',
      cpuCount: 2,
      memoryBytes: 4 * 1024 ** 3,
      sandboxCount: this.executions().length,
      sandboxesMax: 1000,
      driver: 'fake',
    };
  }

  async create(request: CreateSandbox, signal?: AbortSignal): Promise<NodeSandbox> {
    await this.before('create', request, signal);
    signal?.throwIfAborted();
    this.created.push(request);
    const sandbox: NodeSandbox = {
      sandboxId: request.sandboxId,
      executionId: request.executionId,
      startedAtMs: Date.now(),
      resources: request.resources,
    };
    const path = this.#path(request);
    writeFileSync(`${path}.tmp`, JSON.stringify(sandbox));
    renameSync(`${path}.tmp`, path);
    await this.after('create', request);
    return sandbox;
  }

  async kill(target: ExecutionRef): Promise<void> {
    await this.before('kill', target);
    rmSync(this.#path(target), { force: true });
    await this.after('kill', target);
  }

  async list(): Promise<NodeSandbox[]> {
    await this.before('list', null);
    const sandboxes = this.executions();
    await this.after('list', null);
    return sandboxes;
  }

  onExit(listener: (exit: SandboxExit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async updateNetwork(): Promise<void> {}

  async traffic(): Promise<TrafficCounters> {
    return { bytesIn: 0, bytesOut: 0, denied: 0 };
  }

  async dial(): Promise<number> {
    throw new AtollError('unavailable', 'nothing listens here');
  }

  /** A sandbox ends by itself. */
  exit(target: ExecutionRef): void {
    rmSync(this.#path(target), { force: true });
    for (const listener of this.#listeners) {
      listener({ sandboxId: target.sandboxId, executionId: target.executionId, reason: 'init_exited' });
    }
  }

  /** What is on the machine now. */
  executions(): NodeSandbox[] {
    return readdirSync(this.#directory)
      .filter(name => !name.endsWith('.tmp'))
      .map(name => JSON.parse(readFileSync(join(this.#directory, name), 'utf8')) as NodeSandbox);
  }

  #path({ sandboxId, executionId }: ExecutionRef): string {
    return join(this.#directory, `${sandboxId}.${executionId}`);
  }
}
