import { closeSync } from 'node:fs';
import { AtollError } from '../../../base/error.ts';
import type { Native } from '../../native.ts';

/** Bits of inotify(7). */
export const In = {
  modify: 0x2,
  attribute: 0x4,
  movedFrom: 0x40,
  movedTo: 0x80,
  create: 0x100,
  delete: 0x200,
  deleteSelf: 0x400,
  moveSelf: 0x800,
  overflow: 0x4000,
  ignored: 0x8000,
  isDirectory: 0x40000000,
  /** Flags of a watch. */
  onlyDirectory: 0x01000000,
  dontFollow: 0x02000000,
} as const;

const watchedFor = In.modify | In.attribute | In.movedFrom | In.movedTo | In.create | In.delete | In.deleteSelf | In.moveSelf;

/** Something happened to an entry of a directory (`name` is not empty) or to the directory itself. `name` has one character for each byte. */
export type InotifyEvent = { mask: number; cookie: number; name: string };

/** Whoever watches a directory. */
export type DirectoryWatcher = {
  onEvent(event: InotifyEvent): void;
  /** The kernel watches the directory no more, as it is gone. */
  onGone(): void;
};

/** Whoever must know that events were lost. */
export type LossListener = () => void;

/**
 * The agent's one inotify instance: the kernel counts instances for each user. It is there while something is watched.
 * Bun can't wait for inotify, but for a pipe: `init pump` copies from one to the other.
 */
export class Inotify {
  readonly #native: Native;
  readonly #initPath: string;
  #instance: { fd: number; stop(): void } | undefined;
  /** One watch serves all who watch the same directory. */
  #watches = new Map<number, Set<DirectoryWatcher>>();
  #barriers = new Map<number, () => void>();
  #lossListeners = new Set<LossListener>();

  constructor(native: Native, initPath: string) {
    this.#native = native;
    this.#initPath = initPath;
  }

  /** Keeps the instance open until the answered function is called; `onLoss` is told when events were lost. */
  hold(onLoss: LossListener): () => void {
    this.#lossListeners.add(onLoss);
    try {
      this.#instance ??= this.#start();
    } catch (error) {
      this.#lossListeners.delete(onLoss);
      throw error;
    }
    return () => {
      this.#lossListeners.delete(onLoss);
      if (this.#lossListeners.size > 0) return;
      this.#instance?.stop();
      this.#instance = undefined;
      this.#watches.clear();
      this.#barriers.clear();
    };
  }

  /** Watches a directory. Answers the watch, or -1 where there is no directory or no watch is left. Only while held. */
  add(path: Uint8Array, watcher: DirectoryWatcher, followLink: boolean): number {
    const watch = this.#native.addWatch(this.#instance?.fd ?? -1, path, watchedFor | In.onlyDirectory | (followLink ? 0 : In.dontFollow));
    if (watch < 0) return -1;
    const watchers = this.#watches.get(watch);
    if (watchers) watchers.add(watcher);
    else this.#watches.set(watch, new Set([watcher]));
    return watch;
  }

  remove(watch: number, watcher: DirectoryWatcher): void {
    const watchers = this.#watches.get(watch);
    if (!watchers?.delete(watcher) || watchers.size > 0) return;
    this.#watches.delete(watch);
    this.#native.removeWatch(this.#instance?.fd ?? -1, watch);
  }

  /** Calls `then` after every event that has happened so far was delivered. */
  afterPending(then: () => void): void {
    const fd = this.#instance?.fd ?? -1;
    // Removing a watch puts an event of its own at the end of the queue. `init` lies where nothing else is watched.
    const watch = this.#native.addWatch(fd, Buffer.from(this.#initPath), In.deleteSelf);
    if (watch < 0) return then();
    const before = this.#barriers.get(watch);
    this.#barriers.set(watch, () => {
      before?.();
      then();
    });
    this.#native.removeWatch(fd, watch);
  }

  #start(): { fd: number; stop(): void } {
    const fd = this.#native.inotify();
    if (fd < 0) throw new AtollError('rate_limited', 'the sandbox has no inotify instance left (fs.inotify.max_user_instances)');
    let isStopped = false;
    let cancel = () => {};
    const run = () => {
      const pump = this.#startPump(fd);
      cancel = pump.cancel;
      void pump.ended.then(() => {
        if (isStopped) return;
        // Somebody in the sandbox killed it.
        run();
        this.#lost();
      });
    };
    run();
    return {
      fd,
      stop: () => {
        isStopped = true;
        cancel();
        closeSync(fd);
      },
    };
  }

  #startPump(fd: number): { ended: Promise<void>; cancel(): void } {
    const [readEnd, writeEnd] = this.#native.pipe();
    try {
      const child = Bun.spawn([this.#initPath, 'pump'], { cwd: '/', env: {}, stdio: ['ignore', writeEnd, 'ignore', fd] });
      const reader = Bun.file(readEnd).stream().getReader();
      const ended = this.#deliver(reader).then(() => void child.kill(9));
      return { ended, cancel: () => void child.kill(9) };
    } finally {
      closeSync(readEnd);
      closeSync(writeEnd);
    }
  }

  async #deliver(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    let rest = Buffer.alloc(0);
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const bytes = rest.length === 0 ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : Buffer.concat([rest, value]);
      rest = Buffer.from(bytes.subarray(this.#deliverWhole(bytes)));
    }
  }

  /** Delivers all whole events; answers where the first incomplete one begins. */
  #deliverWhole(bytes: Buffer): number {
    let at = 0;
    while (bytes.length - at >= 16) {
      const length = bytes.readUInt32LE(at + 12);
      if (bytes.length - at < 16 + length) break;
      const name = bytes.toString('latin1', at + 16, at + 16 + length).replace(/\0+$/, '');
      this.#deliverOne(bytes.readInt32LE(at), { mask: bytes.readUInt32LE(at + 4), cookie: bytes.readUInt32LE(at + 8), name });
      at += 16 + length;
    }
    return at;
  }

  #deliverOne(watch: number, event: InotifyEvent): void {
    if (event.mask & In.overflow) return this.#lost();
    if (event.mask & In.ignored) {
      const passed = this.#barriers.get(watch);
      this.#barriers.delete(watch);
      passed?.();
      const watchers = this.#watches.get(watch);
      this.#watches.delete(watch);
      for (const watcher of watchers ?? []) watcher.onGone();
      return;
    }
    for (const watcher of this.#watches.get(watch) ?? []) watcher.onEvent(event);
  }

  #lost(): void {
    // What waited for lost events has nothing more to wait for.
    const barriers = [...this.#barriers.values()];
    this.#barriers.clear();
    for (const passed of barriers) passed();
    for (const listener of this.#lossListeners) listener();
  }
}
