import { parseDockerfile } from '../../src/builder/dockerfile/parse.ts';
import type {
  BuildLogEntry,
  BuildProgress,
  BuildProtocol,
  BuildResult,
  DockerStage,
  StartBuild,
} from '../../src/protocol/build.ts';
import { AtollError } from '../../src/base/error.ts';
import { layer } from './support/layer.ts';

/** A builder that does what the test says: its builds say and end nothing by themselves. */
export class ScriptedBuilder implements BuildProtocol {
  readonly started: StartBuild[] = [];
  readonly cancelled: string[] = [];
  readonly entries = new Map<string, BuildLogEntry[]>();
  readonly results = new Map<string, BuildResult>();
  refuses = false;

  async readDockerfile(text: string): Promise<DockerStage[]> {
    return parseDockerfile(text);
  }

  async start(request: StartBuild): Promise<void> {
    if (this.refuses) throw new AtollError('unavailable', 'no builder has room');
    this.started.push(request);
    this.entries.set(request.buildId, []);
  }

  async progress(buildId: string, after: number): Promise<BuildProgress> {
    const entries = this.entries.get(buildId);
    if (!entries) throw new AtollError('not_found', 'unknown');
    const result = this.results.get(buildId);
    return { entries: entries.slice(after), next: entries.length, ...(result && { result }) };
  }

  async cancel(buildId: string, reason: string): Promise<void> {
    this.cancelled.push(buildId);
    this.results.set(buildId, { status: 'error', message: reason });
  }

  async forget(buildId: string): Promise<void> {
    if (this.results.has(buildId)) this.entries.delete(buildId);
  }

  async collect(): Promise<{ layersDeleted: number; filesDeleted: number; bytesFreed: number }> {
    return { layersDeleted: 0, filesDeleted: 0, bytesFreed: 0 };
  }

  async layerBytes(digests: string[]): Promise<Record<string, number>> {
    return Object.fromEntries(digests.filter(digest => digest === layer('11')).map(digest => [digest, 4096]));
  }

  succeed(buildId: string): void {
    this.results.set(buildId, {
      status: 'ready',
      layersMiB: 1,
      state: { layers: [layer('11')], env: { A: 'b' }, user: 'user', workdir: '/w' },
    });
  }
}
