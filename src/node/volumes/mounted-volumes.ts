import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyedMutex } from '../../base/concurrency/keyed-mutex.ts';
import { SharedMutex } from '../../base/concurrency/shared-mutex.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { pathInHelper, type Helper } from '../native/helper.ts';
import { removeUploads } from './file-content.ts';
import { contentOf, holdStill } from './hold-still.ts';

/** How long a volume stays mounted after its last use: work with its content consists of many short calls. */
const lingerMs = 3_000;
/** Time to release the writers of a volume that a crash has left held. */
const unfreezeTimeoutMs = 60_000;

/** A mounted volume that stays mounted until it is released. */
export type VolumeUse = {
  /** The volume's content, in the helper's mount namespace. */
  root: string;
  /**
   * Carries out a change of the content, but not while the volume is held still: a call of this process on a file
   * system that it holds itself would wait for ever.
   */
  change<T>(work: () => Promise<T>): Promise<T>;
  release(): void;
};

type Mounted = { users: number; ready: Promise<string>; linger?: Timer };

type Options = {
  helper: Helper;
  /** Where volumes are mounted, in the helper's mount namespace. */
  mounts: string;
  /** Changes of one volume, by its ID: mounts take turns with all other changes. */
  changing: KeyedMutex<string>;
  log: Log;
};

/** The volumes that are mounted now: each once, while somebody uses it, and a little longer. */
export class MountedVolumes {
  readonly #options: Options;
  readonly #imageOf: (volumeId: string) => string;
  readonly #mounted = new Map<string, Mounted>();
  readonly #sealed = new Set<string>();
  /** Volumes whose image is mounted at its place: at any other place, another file system would be held. */
  readonly #live = new Set<string>();
  /** Changes by this process run side by side, but none while a volume is held still. */
  readonly #content = new SharedMutex<string>();

  /** `imageOf` answers the path of a volume's image; it throws if there is none. */
  constructor(options: Options, imageOf: (volumeId: string) => string) {
    this.#options = options;
    this.#imageOf = imageOf;
  }

  /** Mounts a volume, unless it is mounted. Fails with the errors of `imageOf`; `unavailable` for a sealed one. */
  async use(volumeId: string): Promise<VolumeUse> {
    if (this.#sealed.has(volumeId))
      throw new AtollError('unavailable', 'The volume goes to another machine now; try again', {
        retryAfterSeconds: 2,
      });
    const entry = this.#mounted.get(volumeId) ?? this.#begin(volumeId);
    clearTimeout(entry.linger);
    entry.users++;
    const root = await entry.ready;
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      if (--entry.users > 0) return;
      entry.linger = setTimeout(() => this.#end(volumeId, entry), lingerMs);
      entry.linger.unref();
    };
    return { root, change: work => this.#content.share(volumeId, work), release };
  }

  /** Unmounts a volume, even if it is in use, and calls `remove` before anybody can mount it again. */
  async remove(volumeId: string, remove: () => Promise<void>): Promise<void> {
    clearTimeout(this.#mounted.get(volumeId)?.linger);
    this.#mounted.delete(volumeId);
    await this.#options.changing.run(volumeId, async () => {
      await this.#unmount(volumeId);
      await remove();
    });
  }

  /** Unmounts a volume, which nobody can use until it is unsealed. Fails with `conflict` while somebody uses it. */
  async seal(volumeId: string): Promise<void> {
    const entry = this.#mounted.get(volumeId);
    if (this.#sealed.has(volumeId) || (entry && entry.users > 0))
      throw new AtollError('conflict', `volume ${volumeId} is in use`, { retryAfterSeconds: 2 });
    this.#sealed.add(volumeId);
    try {
      if (entry) this.#end(volumeId, entry);
      // Waits for the unmount.
      await this.#options.changing.run(volumeId, async () => {});
    } catch (error) {
      this.#sealed.delete(volumeId);
      throw error;
    }
  }

  unseal(volumeId: string): void {
    this.#sealed.delete(volumeId);
  }

  /** Carries out `work` while the image does not change: writers to the volume wait meanwhile. */
  async still<T>(volumeId: string, work: () => Promise<T>): Promise<T> {
    return this.#options.changing.run(volumeId, async () => {
      if (!this.#live.has(volumeId)) return work();
      const point = this.#pointOf(volumeId);
      return await this.#content.alone(volumeId, () => holdStill(this.#options, point, work));
    });
  }

  /**
   * Carries out work that changes the content of several volumes and other things, but not while one of them is held
   * still. They stay mounted meanwhile. Errors: those of `use`.
   */
  async change<T>(volumeIds: readonly string[], work: () => Promise<T>): Promise<T> {
    const uses: VolumeUse[] = [];
    try {
      // All uses come first: holding a volume also keeps it from being mounted or unmounted.
      for (const volumeId of volumeIds) uses.push(await this.use(volumeId));
      // Everybody asks in the same order, so that nobody waits for somebody who waits for them.
      return await this.#changeAll([...new Set(volumeIds)].sort(), work);
    } finally {
      for (const { release } of uses) release();
    }
  }

  async #changeAll<T>([first, ...others]: readonly string[], work: () => Promise<T>): Promise<T> {
    if (first === undefined) return await work();
    return await this.#content.share(first, () => this.#changeAll(others, work));
  }

  /** Leaves everything mounted and unmounts nothing later. */
  stop(): void {
    for (const { linger } of this.#mounted.values()) clearTimeout(linger);
  }

  #begin(volumeId: string): Mounted {
    const entry: Mounted = { users: 0, ready: this.#options.changing.run(volumeId, () => this.#mount(volumeId)) };
    this.#mounted.set(volumeId, entry);
    entry.ready.catch(() => void (this.#mounted.get(volumeId) === entry && this.#mounted.delete(volumeId)));
    return entry;
  }

  #end(volumeId: string, entry: Mounted): void {
    if (entry.users > 0 || this.#mounted.get(volumeId) !== entry) return;
    clearTimeout(entry.linger);
    this.#mounted.delete(volumeId);
    const { changing, log } = this.#options;
    changing
      .run(volumeId, () => this.#unmount(volumeId))
      .catch(error => log.error('a volume could not be unmounted', { volumeId, error: messageOf(error) }));
  }

  async #mount(volumeId: string): Promise<string> {
    const image = this.#imageOf(volumeId);
    const point = this.#pointOf(volumeId);
    mkdirSync(point, { recursive: true });
    const { helper, log } = this.#options;
    await helper.call('disk-mount', { image, at: point, durable: true });
    this.#live.add(volumeId);
    // A crash during a copy may have left the volume's writers waiting; for any other volume the program reports that
    // it is not held.
    await helper.spawn(['fsfreeze', '--unfreeze', point], { timeoutMs: unfreezeTimeoutMs });
    const root = contentOf(point);
    await removeUploads(pathInHelper({ helper }, root)).catch((error: unknown) =>
      log.warn('what a crash left of uploads stays in a volume', { volumeId, error: messageOf(error) }),
    );
    return root;
  }

  async #unmount(volumeId: string): Promise<void> {
    const point = this.#pointOf(volumeId);
    this.#live.delete(volumeId);
    await this.#options.helper.call('unmount', { at: point });
    rmSync(point, { recursive: true, force: true });
  }

  #pointOf(volumeId: string): string {
    return join(this.#options.mounts, `volume-${volumeId}`);
  }
}
