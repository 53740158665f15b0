import { existsSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../src/base/error.ts';
import { newUuid } from '../../src/base/id.ts';
import type { NewVolumeEntry, NodeVolume, VolumeEntry, VolumeProtocol } from '../../src/protocol/volume.ts';

/** Volumes that are plain directories; they leave out what matters only to their node (limits, links, owners). */
export class FakeVolumes implements VolumeProtocol {
  readonly #directory: string;
  readonly #sizes = new Map<string, number>();
  readonly #writes = new Map<string, { temporary: string; volumeId: string; path: string }>();

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  async create(volumeId: string, sizeMiB = 1): Promise<void> {
    this.#sizes.set(volumeId, sizeMiB);
    mkdirSync(join(this.#directory, volumeId), { recursive: true });
  }

  /** As if it had been made a day ago. */
  makeOld(volumeId: string): void {
    const yesterday = new Date(Date.now() - 24 * 3_600_000);
    utimesSync(join(this.#directory, volumeId), yesterday, yesterday);
  }

  async remove(volumeId: string): Promise<void> {
    rmSync(join(this.#directory, volumeId), { recursive: true, force: true });
  }

  async taken(volumeIds: string[]): Promise<Record<string, number>> {
    const here = volumeIds.filter(volumeId => existsSync(join(this.#directory, volumeId)));
    return Object.fromEntries(here.map(volumeId => [volumeId, 4096]));
  }

  async list(): Promise<NodeVolume[]> {
    return readdirSync(this.#directory).map(volumeId => ({
      volumeId,
      createdAtMs: statSync(join(this.#directory, volumeId)).mtimeMs,
      sizeMiB: this.#sizes.get(volumeId) ?? 0,
    }));
  }

  async stat(volumeId: string, path: string): Promise<VolumeEntry> {
    const place = this.#place(volumeId, path);
    if (!existsSync(place)) throw new AtollError('not_found', `path: ${path} was not found`);
    const facts = statSync(place);
    return {
      name: path.slice(path.lastIndexOf('/') + 1) || '/',
      type: facts.isDirectory() ? 'directory' : 'file',
      path: join('/', path),
      sizeBytes: facts.size,
      mode: facts.mode & 4095,
      uid: 0,
      gid: 0,
      ...{ accessedAtMs: facts.atimeMs, modifiedAtMs: facts.mtimeMs, changedAtMs: facts.ctimeMs },
    };
  }

  async listDirectory(volumeId: string, path: string): Promise<VolumeEntry[]> {
    return Promise.all(
      readdirSync(this.#place(volumeId, path))
        .toSorted()
        .map(name => this.stat(volumeId, join(path, name))),
    );
  }

  async makeDirectory(volumeId: string, path: string, { force }: NewVolumeEntry): Promise<VolumeEntry> {
    if (existsSync(this.#place(volumeId, path)) && !force)
      throw new AtollError('conflict', `path: ${path} exists already`);
    mkdirSync(this.#place(volumeId, path), { recursive: true });
    return this.stat(volumeId, path);
  }

  async changeEntry(volumeId: string, path: string): Promise<VolumeEntry> {
    return this.stat(volumeId, path);
  }

  async removeEntry(volumeId: string, path: string): Promise<void> {
    await this.stat(volumeId, path);
    rmSync(this.#place(volumeId, path), { recursive: true });
  }

  async openRead(volumeId: string, path: string): Promise<{ sizeBytes: number; descriptor: number }> {
    const { sizeBytes } = await this.stat(volumeId, path);
    return { sizeBytes, descriptor: openSync(this.#place(volumeId, path), 'r') };
  }

  async openWrite(volumeId: string, path: string): Promise<{ writeId: string; descriptor: number }> {
    const [writeId, temporary] = [newUuid(), join(this.#directory, '..', newUuid())];
    this.#place(volumeId, path);
    const descriptor = openSync(temporary, 'wx');
    this.#writes.set(writeId, { temporary, volumeId, path });
    return { writeId, descriptor };
  }

  async keepWrite(writeId: string): Promise<VolumeEntry> {
    const write = this.#takeWrite(writeId);
    renameSync(write.temporary, this.#place(write.volumeId, write.path));
    return this.stat(write.volumeId, write.path);
  }

  async dropWrite(writeId: string): Promise<void> {
    rmSync(this.#takeWrite(writeId).temporary);
  }

  #takeWrite(writeId: string): { volumeId: string; path: string; temporary: string } {
    const write = this.#writes.get(writeId);
    if (!write) throw new AtollError('not_found', 'ended already');
    this.#writes.delete(writeId);
    return write;
  }

  #place(volumeId: string, path: string): string {
    if (!existsSync(join(this.#directory, volumeId))) throw new AtollError('not_found', 'the volume is not here');
    return join(this.#directory, volumeId, join('/', path));
  }
}
