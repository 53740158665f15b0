import { closeSync } from 'node:fs';
import type { ReadableStreamDefaultReader } from 'node:stream/web';
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

const watchedFor =
  In.modify | In.attribute | In.movedFrom | In.movedTo | In.create | In.delete | In.deleteSelf | In.moveSelf;

/**
 * An event at an entry of a directory (`name` is not empty) or at the directory itself. `name` has one character per
 * byte.
 */
export type InotifyEvent = { mask: number; cookie: number; name: string };

/** A watcher of a directory. */
export type DirectoryWatcher = {
  onEvent(event: InotifyEvent): void;
  /** The kernel no longer watches the directory, because it is gone. */
  onGone(): void;
};

/** Called when events were lost. */
type LossListener = () => void;

/**
 * The agent's one inotify instance, open while something is watched; there is one because the kernel counts instances
 * per user. Bun can't wait for inotify but can for a pipe: `init pump` copies from one to the other.
 */
export class Inotify {
  readonly #native: Native;
  readonly #initPath: string;
  readonly #lossListeners = new Set<LossListener>();
  #instance: Instance | undefined;

  constructor(native: Native, initPath: string) {
    this.#native = native;
    this.#initPath = initPath;
  }

  /** Keeps the instance open until the answered function is called; calls `onLoss` if events were lost. */
  hold(onLoss: LossListener): () => void {
    this.#instance ??= openInstance(this.#native, this.#initPath, () => {
      for (const listener of this.#lossListeners) listener();
    });
    this.#lossListeners.add(onLoss);
    return () => {
      this.#lossListeners.delete(onLoss);
      if (this.#lossListeners.size > 0) return;
      this.#instance?.stop();
      this.#instance = undefined;
    };
  }

  /** Watches a directory. Answers the watch, or -1 if there is no directory or no watch is left. Only while held. */
  add(path: Uint8Array, watcher: DirectoryWatcher, followLink: boolean): number {
    if (!this.#instance) return -1;
    const { fd, watches } = this.#instance;
    const watch = this.#native.addWatch(fd, path, watchedFor | In.onlyDirectory | (followLink ? 0 : In.dontFollow));
    if (watch < 0) return -1;
    // All watchers of one directory share one watch.
    const watchers = watches.get(watch);
    if (watchers) watchers.add(watcher);
    else watches.set(watch, new Set([watcher]));
    return watch;
  }

  remove(watch: number, watcher: DirectoryWatcher): void {
    if (!this.#instance) return;
    const { fd, watches } = this.#instance;
    const watchers = watches.get(watch);
    if (!watchers?.delete(watcher) || watchers.size > 0) return;
    watches.delete(watch);
    this.#native.removeWatch(fd, watch);
  }

  /** Calls `then` once every event that has happened so far was delivered or lost. */
  afterPending(then: (wasLost: boolean) => void): void {
    if (!this.#instance) return then(true);
    const { fd, barriers } = this.#instance;
    // Removing a watch puts an event at the end of the queue. Nobody else watches `init`, because watches are for
    // directories.
    const watch = this.#native.addWatch(fd, Buffer.from(this.#initPath), In.deleteSelf);
    if (watch < 0) return then(true);
    barriers.set(watch, then);
    this.#native.removeWatch(fd, watch);
  }
}

/**
 * State of one open instance. The next instance numbers its watches from 1 again, and an instance's last events may
 * arrive after it was closed: they must find only its own watches.
 */
type Instance = {
  readonly fd: number;
  readonly watches: Map<number, Set<DirectoryWatcher>>;
  readonly barriers: Map<number, (wasLost: boolean) => void>;
  stop(): void;
};

function openInstance(native: Native, initPath: string, onLoss: () => void): Instance {
  const fd = native.inotify();
  if (fd < 0)
    throw new AtollError('rate_limited', 'the sandbox has no inotify instance left (fs.inotify.max_user_instances)');
  let isStopped = false;
  let pump = { stop() {} };
  const instance: Instance = {
    fd,
    watches: new Map(),
    barriers: new Map(),
    stop() {
      isStopped = true;
      pump.stop();
      closeSync(fd);
      passBarriers(instance);
    },
  };
  const lost = () => {
    passBarriers(instance);
    onLoss();
  };
  const startPump = () => {
    const started = openPump(native, initPath, fd);
    pump = started;
    void deliver(started.reader, bytes => deliverWhole(instance, bytes, lost)).then(() => {
      if (isStopped) return;
      // Somebody in the sandbox killed it.
      startPump();
      lost();
    });
  };
  try {
    startPump();
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return instance;
}

/** Whoever waits for lost events need not wait any longer. */
function passBarriers({ barriers }: Instance): void {
  const passed = [...barriers.values()];
  barriers.clear();
  for (const then of passed) then(true);
}

type Reader = ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;

function openPump(native: Native, initPath: string, fd: number): { reader: Reader; stop(): void } {
  const [readEnd, writeEnd] = native.pipe();
  try {
    const child = Bun.spawn([initPath, 'pump'], { cwd: '/', env: {}, stdio: ['ignore', writeEnd, 'ignore', fd] });
    return { reader: Bun.file(readEnd).stream().getReader(), stop: () => child.kill(9) };
  } finally {
    // The child and the reader have duplicates of it.
    closeSync(readEnd);
    closeSync(writeEnd);
  }
}

/** Gives `take` all bytes, those that it left over before the new ones. `take` answers how many it took. */
async function deliver(reader: Reader, take: (bytes: Buffer) => number): Promise<void> {
  let rest: Buffer = Buffer.alloc(0);
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const bytes =
      rest.length === 0 ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : Buffer.concat([rest, value]);
    rest = Buffer.from(bytes.subarray(take(bytes)));
  }
}

// struct inotify_event: int wd; uint32_t mask, cookie, len; char name[len], padded with zeros.
const headBytes = 16;

function deliverWhole(instance: Instance, bytes: Buffer, lost: () => void): number {
  let at = 0;
  while (bytes.length - at >= headBytes) {
    const end = at + headBytes + bytes.readUInt32LE(at + 12);
    if (end > bytes.length) break;
    const padded = bytes.subarray(at + headBytes, end);
    const zero = padded.indexOf(0);
    const name = padded.toString('latin1', 0, zero < 0 ? padded.length : zero);
    const event = { mask: bytes.readUInt32LE(at + 4), cookie: bytes.readUInt32LE(at + 8), name };
    if (event.mask & In.overflow) lost();
    else deliverOne(instance, bytes.readInt32LE(at), event);
    at = end;
  }
  return at;
}

function deliverOne({ watches, barriers }: Instance, watch: number, event: InotifyEvent): void {
  const watchers = watches.get(watch);
  if (!(event.mask & In.ignored)) {
    for (const watcher of watchers ?? []) watcher.onEvent(event);
    return;
  }
  const passed = barriers.get(watch);
  barriers.delete(watch);
  passed?.(false);
  watches.delete(watch);
  for (const watcher of watchers ?? []) watcher.onGone();
}
