import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../src/base/error.ts';
import type { ReadSandboxLogs, SandboxLogEntry } from '../../src/protocol/logs.ts';
import type {
  CreateSandbox,
  ExecutionRef,
  IncidentsPage,
  IncidentsCursor,
  MemoryAbility,
  NodeInfo,
  NodeProtocol,
  NodeSandbox,
  PausedSandbox,
  ResumedSandbox,
  ResumeSandbox,
  OwnEnd,
  SandboxNetwork,
  SetAsideSandbox,
  Snapshot,
  TakeSnapshot,
} from '../../src/protocol/node.ts';
import type { NodeUsage, SampleRange, SandboxSample, TrafficCounters } from '../../src/protocol/node-usage.ts';
import { openWithdrawn, type Withdrawn } from '../../src/node/sandbox/records/withdrawn.ts';
import { sha256Hex } from '../../src/base/crypto/secret.ts';
import { createIncidents } from '../../src/node/sandbox/incidents.ts';
import { FakeVolumes } from './fake-volumes.ts';
import { layer } from './support/layer.ts';

/** The calls that can be made to fail or take time. */
export type FakeCall = 'create' | 'kill' | 'list' | 'updateNetwork' | 'pause' | 'resume' | 'snapshot';

/**
 * A node without a machine, for the tests of the API: its sandboxes are files in a directory, so that they outlive the
 * process like real ones. Every call can be made to fail or take time.
 */
export class FakeNode implements NodeProtocol {
  readonly created: CreateSandbox[] = [];
  /** The current network policy of each sandbox. */
  readonly networks = new Map<string, SandboxNetwork>();
  readonly resumed: ResumeSandbox[] = [];
  /** The log of every sandbox. */
  logEntries: SandboxLogEntry[] = [];
  readonly logReads: ReadSandboxLogs[] = [];
  /** Called before the work of each call; may wait or throw. */
  before: (call: FakeCall, target: ExecutionRef | null, signal?: AbortSignal) => Promise<void> = async () => {};
  /** Called after the work of each call, before its answer. */
  after: (call: FakeCall, target: ExecutionRef | null, signal?: AbortSignal) => Promise<void> = async () => {};
  /** What it reports about itself, and adheres to. */
  memory: MemoryAbility = { kept: true };
  /** Whether a pause that needs the agent inside finds it responsive. */
  agentAnswers = true;
  readonly volumes: FakeVolumes;
  readonly #directory: string;
  readonly #incidents = createIncidents();
  readonly #withdrawn: Withdrawn;

  constructor(directory: string) {
    this.#directory = directory;
    this.volumes = new FakeVolumes(join(directory, 'volumes'));
    for (const folder of ['paused', 'snapshots', 'withdrawn']) mkdirSync(join(directory, folder), { recursive: true });
    this.#withdrawn = openWithdrawn(join(directory, 'withdrawn'));
  }

  async info(): Promise<NodeInfo> {
    return {
      nodeId: 'node-1',
      cpuCount: 2,
      memoryBytes: 4 * 1024 ** 3,
      sandboxCount: this.executions().length,
      sandboxesMax: 1000,
      driver: 'crun',
      memoryByDriver: { crun: this.memory },
      memory: this.memory,
      machine: { cpuFamily: '6', cpuModel: '85', cpuModelName: 'A processor', cpuArchitecture: 'x86_64' },
    };
  }

  async usage(): Promise<NodeUsage> {
    return {
      cpuPercent: 12.4,
      memoryUsedBytes: 1024 ** 3,
      hugePages: { total: 0, used: 0, reserved: 0, pageSizeBytes: 2 * 1024 ** 2 },
      disks: [
        {
          mountPoint: '/',
          device: '/dev/sda1',
          filesystemType: 'ext4',
          usedBytes: 3 * 1024 ** 3,
          totalBytes: 9 * 1024 ** 3,
        },
      ],
      space: { freeBytes: 5 * 1024 ** 3, owedBytes: 0, reserveBytes: 2 * 1024 ** 3, held: false, failedDisks: 0 },
      pool: { size: 4, ready: 3, hits: 5, misses: 1, refills: 8, failures: 0 },
      traffic: { bytesOut: 100, bytesIn: 200, denied: 3 },
    };
  }

  async create(request: CreateSandbox, signal?: AbortSignal): Promise<NodeSandbox> {
    await this.before('create', request, signal);
    signal?.throwIfAborted();
    this.#withdrawn.require(request.executionId);
    this.created.push(request);
    const sandbox: NodeSandbox = {
      sandboxId: request.sandboxId,
      executionId: request.executionId,
      startedAtMs: Date.now(),
      resources: request.resources,
      diskFailed: false,
    };
    this.#write(this.#path(request), sandbox);
    this.networks.set(request.sandboxId, request.network);
    await this.after('create', request, signal);
    return sandbox;
  }

  async kill(target: ExecutionRef): Promise<void> {
    await this.before('kill', target);
    rmSync(this.#path(target), { force: true });
    rmSync(this.#pausedPath(target), { force: true });
    await this.after('kill', target);
  }

  async withdraw({ executionId }: ExecutionRef): Promise<boolean> {
    if ([...this.executions(), ...this.paused()].some(known => known.executionId === executionId)) return false;
    this.#withdrawn.add(executionId);
    return true;
  }

  async memoryAbility(): Promise<MemoryAbility> {
    return this.memory;
  }

  async pause(
    target: ExecutionRef,
    { memory, requireAgent }: { memory: boolean; requireAgent?: boolean },
  ): Promise<PausedSandbox> {
    await this.before('pause', target);
    if (requireAgent && !this.agentAnswers) throw new AtollError('unavailable', 'its agent does not answer');
    const known = this.paused().find(paused => paused.executionId === target.executionId);
    if (!known) {
      this.#runs(target);
      this.#requireMemory(memory);
      const { sandboxId, executionId } = target;
      const paused: PausedSandbox = {
        sandboxId,
        executionId,
        kept: memory ? 'memory' : 'filesystem',
        pausedAtMs: Date.now(),
      };
      this.#write(this.#pausedPath(target), paused);
      rmSync(this.#path(target));
    }
    await this.after('pause', target);
    return this.paused().find(paused => paused.executionId === target.executionId) ?? gone();
  }

  async resume(request: ResumeSandbox): Promise<ResumedSandbox> {
    await this.before('resume', request);
    const next = { sandboxId: request.sandboxId, executionId: request.nextExecutionId };
    const paused = this.paused().find(paused => paused.executionId === request.executionId);
    const known = this.executions().find(sandbox => sandbox.executionId === next.executionId);
    if (!known) {
      this.#withdrawn.require(next.executionId);
      if (!paused) gone();
      this.resumed.push(request);
      const sandbox: NodeSandbox = {
        ...next,
        startedAtMs: Date.now(),
        resources: { cpuCount: 2, memoryMiB: 1024, diskMiB: 5120 },
        diskFailed: false,
      };
      this.#write(this.#path(next), sandbox);
      rmSync(this.#pausedPath(request));
    }
    await this.after('resume', request);
    const sandbox = this.executions().find(sandbox => sandbox.executionId === next.executionId);
    if (!sandbox) gone();
    return { ...sandbox, from: request.memory && paused?.kept === 'memory' ? 'memory' : 'filesystem' };
  }

  async listPaused(): Promise<PausedSandbox[]> {
    return this.paused().filter(({ sandboxId }) => !this.setAsideIds.has(sandboxId));
  }

  /** The sandboxes that are set aside, with the reasons. */
  readonly setAsideIds = new Map<string, string>();

  async setAside(target: ExecutionRef, reason: string): Promise<void> {
    if (this.executions().some(({ executionId }) => executionId === target.executionId))
      await this.pause(target, { memory: false });
    if (this.paused().some(({ executionId }) => executionId === target.executionId))
      this.setAsideIds.set(target.sandboxId, reason);
  }

  async listSetAside(): Promise<SetAsideSandbox[]> {
    return this.paused().flatMap(({ sandboxId, executionId, kept, pausedAtMs }) => {
      const reason = this.setAsideIds.get(sandboxId);
      const resources = { cpuCount: 2, memoryMiB: 1024, diskMiB: 5120 };
      const image = { templateId: 'aaaaaaaaaaaaaaaaaaaa', buildId: 'b' };
      return reason === undefined
        ? []
        : [
            {
              sandboxId,
              known: { executionId, kept, image, resources, volumes: [], startedAtMs: pausedAtMs },
              sinceMs: pausedAtMs,
              reason,
            },
          ];
    });
  }

  async takeBack(target: ExecutionRef): Promise<PausedSandbox> {
    if (!this.setAsideIds.delete(target.sandboxId)) gone();
    return this.paused().find(paused => paused.executionId === target.executionId) ?? gone();
  }

  async removeSetAside(sandboxId: string): Promise<void> {
    const paused = this.paused().find(paused => paused.sandboxId === sandboxId);
    if (!paused || !this.setAsideIds.delete(sandboxId)) gone();
    rmSync(this.#pausedPath(paused));
  }

  async snapshot(request: TakeSnapshot): Promise<Snapshot> {
    await this.before('snapshot', request);
    this.#runs(request);
    this.#requireMemory(request.memory);
    if (request.memory) this.#write(join(this.#directory, 'snapshots', request.snapshotId), { takenAtMs: Date.now() });
    await this.after('snapshot', request);
    return {
      layers: [layer('00'), `sha256:${sha256Hex(request.snapshotId)}`],
      kept: request.memory ? 'memory' : 'filesystem',
      driver: 'crun',
    };
  }

  async deleteSnapshot(snapshotId: string): Promise<void> {
    rmSync(join(this.#directory, 'snapshots', snapshotId), { force: true });
  }

  async listSnapshots(): Promise<{ snapshotId: string; takenAtMs: number }[]> {
    return filesOf<{ takenAtMs: number }>(join(this.#directory, 'snapshots')).map(({ name, content }) => ({
      snapshotId: name,
      ...content,
    }));
  }

  async list(): Promise<NodeSandbox[]> {
    await this.before('list', null);
    const sandboxes = this.executions();
    await this.after('list', null);
    return sandboxes;
  }

  async incidents(after: IncidentsCursor | null, waitMs: number, signal?: AbortSignal): Promise<IncidentsPage> {
    return this.#incidents.read(after, waitMs, signal);
  }

  async updateNetwork(target: ExecutionRef, network: SandboxNetwork): Promise<void> {
    await this.before('updateNetwork', target);
    if (!existsSync(this.#path(target))) throw new AtollError('not_found', 'not here');
    this.networks.set(target.sandboxId, network);
    await this.after('updateNetwork', target);
  }

  async logs(read: ReadSandboxLogs): Promise<SandboxLogEntry[]> {
    const { backward, limit, fromMs = 0, search = '' } = read;
    this.logReads.push(read);
    const entries = this.logEntries.filter(
      ({ timestampMs, message }) => timestampMs >= fromMs && message.includes(search),
    );
    return (backward ? entries.toReversed() : entries).slice(0, limit);
  }

  async traffic(): Promise<TrafficCounters> {
    return { bytesIn: 0, bytesOut: 0, denied: 0 };
  }

  /** The samples of each sandbox, by its ID. */
  readonly sampled = new Map<string, SandboxSample[]>();

  async samples(sandboxId: string, { startSeconds, endSeconds, pointsMax }: SampleRange): Promise<SandboxSample[]> {
    const all = this.sampled.get(sandboxId) ?? [];
    return all.filter(({ atSeconds }) => atSeconds >= startSeconds && atSeconds <= endSeconds).slice(0, pointsMax);
  }

  async latestSamples(sandboxIds: string[]): Promise<Record<string, SandboxSample>> {
    return Object.fromEntries(
      sandboxIds.flatMap(sandboxId => (this.sampled.get(sandboxId) ?? []).slice(-1).map(sample => [sandboxId, sample])),
    );
  }

  async dial(): Promise<number> {
    throw new AtollError('unavailable', 'nothing listens here');
  }

  /** Makes the sandbox's disk fail. */
  failDisk({ sandboxId, executionId }: ExecutionRef): void {
    this.#incidents.report({ sandboxId, executionId, reason: 'disk_failed' });
  }

  /** A sandbox ends by itself. */
  exit(target: ExecutionRef, reason: OwnEnd = 'init_exited'): void {
    rmSync(this.#path(target), { force: true });
    this.#incidents.report({ sandboxId: target.sandboxId, executionId: target.executionId, reason });
  }

  /** What runs on the machine now. */
  executions(): NodeSandbox[] {
    return filesOf<NodeSandbox>(this.#directory).map(({ content }) => content);
  }

  /** What is paused on the machine now. */
  paused(): PausedSandbox[] {
    return filesOf<PausedSandbox>(join(this.#directory, 'paused')).map(({ content }) => content);
  }

  #runs(target: ExecutionRef): void {
    if (!this.executions().some(sandbox => sandbox.executionId === target.executionId)) gone();
  }

  #requireMemory(asked: boolean): void {
    if (asked && !this.memory.kept) throw new AtollError('precondition', `memory can't be kept: ${this.memory.reason}`);
  }

  #write(path: string, content: unknown): void {
    writeFileSync(`${path}.tmp`, JSON.stringify(content));
    renameSync(`${path}.tmp`, path);
  }

  #path({ sandboxId, executionId }: ExecutionRef): string {
    return join(this.#directory, `${sandboxId}.${executionId}`);
  }

  #pausedPath({ sandboxId, executionId }: ExecutionRef): string {
    return join(this.#directory, 'paused', `${sandboxId}.${executionId}`);
  }
}

function gone(): never {
  throw new AtollError('not_found', 'it is not on this node');
}

function filesOf<T>(directory: string): { name: string; content: T }[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap(entry => {
    if (!entry.isFile() || entry.name.endsWith('.tmp')) return [];
    return [{ name: entry.name, content: JSON.parse(readFileSync(join(directory, entry.name), 'utf8')) as T }];
  });
}
