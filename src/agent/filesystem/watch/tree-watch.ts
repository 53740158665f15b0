import { lstatSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { AtollError } from '../../../base/error.ts';
import { In, type Inotify, type InotifyEvent } from './inotify.ts';
import { readEntries } from './read-entries.ts';
import { rescan } from './rescan.ts';
import type { EventType, TreeEvent } from './tree-event.ts';
import { detachNode, moveNode, nameIn, newNode, type TreeNode } from './tree-node.ts';

/** Receives the events of one tree, in order. */
type TreeListener = {
  /** False: it has no room, and calls `catchUp` once it has. */
  report(event: TreeEvent): boolean;
  /** The last call: a new directory can't be watched. */
  fail(error: AtollError): void;
};

/** How long a moved directory may take to arrive elsewhere in the tree, milliseconds. */
const moveMs = 100;
/** Clocks of file systems lag by up to a tick: reporting a change twice is better than never. */
const clockSlackMs = 100;

/** Interval between checkpoints during events, milliseconds: a rescan does not repeat older changes. */
const checkpointEveryMs = 500;

const comingAndGoing = In.create | In.movedTo | In.delete | In.movedFrom;

// The order in which several meanings of one event are reported.
const meanings: [mask: number, type: EventType][] = [
  [In.create | In.movedTo, 'EVENT_TYPE_CREATE'],
  [In.movedFrom | In.moveSelf, 'EVENT_TYPE_RENAME'],
  [In.attribute, 'EVENT_TYPE_CHMOD'],
  [In.modify, 'EVENT_TYPE_WRITE'],
  [In.delete | In.deleteSelf, 'EVENT_TYPE_REMOVE'],
];

/**
 * Watches a directory or a whole tree, and reports its events. It enters new directories and also reports what was put
 * into them before it could watch them. If events were lost or the listener fell behind, it looks for changes (see
 * `rescan`).
 */
export class TreeWatch {
  readonly #inotify: Inotify;
  readonly #path: Buffer;
  readonly #isRecursive: boolean;
  readonly #listener: TreeListener;
  readonly #root = newNode('', undefined);
  readonly #moved = new Map<number, TreeNode>();
  #release: (() => void) | undefined;
  /** `behind`: the listener has no room. */
  #state: 'arming' | 'reporting' | 'behind' | 'closed' = 'arming';
  /** Resolves at the next change of state. */
  #turn = Promise.withResolvers<void>();
  /** The listener knows everything that happened before this time. Epoch milliseconds. */
  #knownMs = Date.now();
  #checkpointMs = 0;
  /** How often events were lost, so that a rescan became necessary. */
  #losses = 0;
  #isLooking = false;
  #mustLook = false;
  /** Looks that have not ended: their findings are not reported yet. */
  readonly #looks = new Set<Promise<void>>();

  constructor(inotify: Inotify, path: string, isRecursive: boolean, listener: TreeListener) {
    this.#inotify = inotify;
    this.#path = Buffer.from(path);
    this.#isRecursive = isRecursive;
    this.#listener = listener;
  }

  /**
   * Starts watching: everything that happens after this resolved is reported. Errors: `rate_limited` if the kernel has
   * no watch left.
   */
  async arm(): Promise<void> {
    try {
      this.#release = this.#inotify.hold(() => this.#look());
      if (!this.#watch(this.#root)) throw noWatchLeft(this.#path);
      if (this.#isRecursive) await this.#enter(this.#root, false);
    } catch (error) {
      this.close();
      throw error;
    }
    if (this.#state === 'arming') this.#become('reporting');
    if (this.#mustLook) this.#look();
  }

  close(): void {
    this.#become('closed');
    this.#forget(this.#root);
    for (const node of this.#moved.values()) this.#forget(node);
    this.#release?.();
    this.#release = undefined;
  }

  /** The listener has room again: reports what has changed since it had none, then goes on as before. */
  catchUp(): void {
    if (this.#state !== 'behind') return;
    this.#become('reporting');
    this.#look();
  }

  /**
   * Resolves once all events before the call were reported, or the kernel lost them and a rescan looked for them; at
   * once if the listener has no room.
   */
  async settle(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#inotify.afterPending(() => resolve());
    await promise;
    const looked = Promise.all(this.#looks).then(() => true);
    let isOver = false;
    while (!isOver && this.#state !== 'behind')
      isOver = await Promise.race([looked, this.#turn.promise.then(() => false)]);
  }

  #become(state: 'reporting' | 'behind' | 'closed'): void {
    this.#state = state;
    this.#turn.resolve();
    this.#turn = Promise.withResolvers();
  }

  #track(look: Promise<void>): void {
    const tracked = look.catch(error => this.#fail(error)).finally(() => this.#looks.delete(tracked));
    this.#looks.add(tracked);
  }

  #look(): void {
    this.#losses++;
    this.#mustLook = true;
    if (!this.#isLooking && this.#state === 'reporting') this.#track(this.#lookUntilKnown());
  }

  async #lookUntilKnown(): Promise<void> {
    this.#isLooking = true;
    try {
      while (this.#mustLook && this.#state === 'reporting') {
        this.#mustLook = false;
        const startedMs = Date.now();
        await this.#rescan();
        this.#knownMs = startedMs;
      }
    } finally {
      this.#isLooking = false;
    }
  }

  #rescan(): Promise<void> {
    const tree = {
      root: this.#root,
      isRecursive: this.#isRecursive,
      pathOf: (node: TreeNode) => this.#pathOf(node),
      add: (parent: TreeNode, name: string) => this.#add(parent, name),
      isInPlace: (node: TreeNode) => this.#isInPlace(node),
      forget: (node: TreeNode) => this.#forget(node),
      report: (event: TreeEvent) => this.#reportFound(event),
    };
    return rescan(tree, this.#knownMs - clockSlackMs);
  }

  /** Reports what the kernel told, or drops it if there is no room: the look that follows finds it. */
  #report(event: TreeEvent): boolean {
    if (this.#state !== 'reporting') return false;
    const isTaken = this.#listener.report(event);
    if (!isTaken) this.#become('behind');
    return isTaken;
  }

  /** Reports what a look found, as soon as there is room: a second look would find the same and get no further. */
  async #reportFound(event: TreeEvent): Promise<void> {
    while (!this.#report(event) && (this.#state === 'reporting' || this.#state === 'behind')) await this.#turn.promise;
  }

  #fail(error: unknown): void {
    if (this.#state === 'closed') return;
    this.close();
    this.#listener.fail(
      error instanceof AtollError ? error : new AtollError('internal', 'the watch failed', { cause: error }),
    );
  }

  #onEvent(node: TreeNode, event: InotifyEvent): void {
    const { mask, name } = event;
    // Only the watched directory reports itself: the parents report those below.
    if (name === '') return node === this.#root ? this.#reportAll(mask, '.') : undefined;
    if (this.#isUnnamed(node, event)) return;
    if (this.#isRecursive && mask & In.isDirectory) this.#followDirectory(node, event);
    if (mask & comingAndGoing) node.heard?.add(name);
    const wasFound = node.found.delete(name);
    if (wasFound && mask & (In.create | In.movedTo)) return;
    this.#reportAll(mask, nameIn(node, name));
    this.#checkpoint();
  }

  /** The kernel names a file without a name (open(2), `O_TMPFILE`) by its inode's number, `#12`, when it is written. */
  #isUnnamed(node: TreeNode, { mask, name }: InotifyEvent): boolean {
    if (!/^#\d+$/.test(name) || mask & comingAndGoing) return false;
    return !lstatSync(this.#pathOf(node, name), { throwIfNoEntry: false });
  }

  /** Remembers this moment as known once all events before it were reported. */
  #checkpoint(): void {
    const nowMs = Date.now();
    if (this.#checkpointMs + checkpointEveryMs > nowMs) return;
    this.#checkpointMs = nowMs;
    const losses = this.#losses;
    this.#inotify.afterPending(wasLost => {
      const isWhole = !wasLost && losses === this.#losses && !this.#isLooking;
      if (isWhole && this.#state === 'reporting') this.#knownMs = nowMs;
    });
  }

  #reportAll(mask: number, name: string): void {
    for (const [bits, type] of meanings) if (mask & bits) this.#report({ name, type });
  }

  #followDirectory(parent: TreeNode, { mask, cookie, name }: InotifyEvent): void {
    const known = parent.children.get(name);
    if (mask & In.movedFrom && known) this.#awaitArrival(known, cookie);
    else if (mask & In.delete && known) this.#forget(known);
    else if (mask & In.movedTo && this.#moved.has(cookie)) this.#arrive(parent, name, cookie);
    else if (mask & (In.create | In.movedTo) && !known) {
      this.#track(this.#follow(parent, name));
    }
  }

  async #follow(parent: TreeNode, name: string): Promise<void> {
    const node = await this.#add(parent, name);
    if (node) await this.#enter(node, true);
  }

  #awaitArrival(node: TreeNode, cookie: number): void {
    detachNode(node);
    this.#moved.set(cookie, node);
    setTimeout(() => {
      // It left the tree.
      if (this.#moved.get(cookie) === node && this.#moved.delete(cookie)) this.#forget(node);
    }, moveMs);
  }

  #arrive(parent: TreeNode, name: string, cookie: number): void {
    const node = this.#moved.get(cookie);
    this.#moved.delete(cookie);
    if (node) moveNode(node, parent, name);
  }

  /** Watches everything below `node`; with `isNew` it also reports it. */
  async #enter(node: TreeNode, isNew: boolean): Promise<void> {
    node.heard = new Set();
    const entries = await readEntries(this.#pathOf(node));
    const heard = node.heard;
    node.heard = undefined;
    const unheard = isNew ? entries.filter(({ name }) => !heard.has(name)) : [];
    for (const { name } of unheard) node.found.add(name);
    if (unheard.length > 0) this.#inotify.afterPending(() => (node.found = new Set()));
    for (const { name } of unheard) {
      const event: TreeEvent = { name: nameIn(node, name), type: 'EVENT_TYPE_CREATE' };
      // At once if possible: what the kernel tells about an entry comes after this.
      if (!this.#report(event)) await this.#reportFound(event);
    }
    for (const { name, isDirectory } of entries) {
      if (!isDirectory || node.children.has(name)) continue;
      const child = await this.#add(node, name);
      if (child) await this.#enter(child, isNew);
    }
    for (const { name, isDirectory } of unheard) if (!isDirectory) await this.#reportContent(node, name);
  }

  /** A file found with content was also written, perhaps before anybody listened. */
  async #reportContent(node: TreeNode, name: string): Promise<void> {
    const facts = await lstat(this.#pathOf(node, name)).catch(() => undefined);
    if (facts?.isFile() && facts.size > 0)
      await this.#reportFound({ name: nameIn(node, name), type: 'EVENT_TYPE_WRITE' });
  }

  /** Undefined: the directory no longer exists. Throws if it can't be watched. */
  async #add(parent: TreeNode, name: string): Promise<TreeNode | undefined> {
    if (this.#state === 'closed') return undefined;
    const node = newNode(name, parent);
    parent.children.set(name, node);
    if (this.#watch(node)) return node;
    const path = this.#pathOf(node);
    detachNode(node);
    const facts = await lstat(path).catch(() => undefined);
    if (facts?.isDirectory()) throw noWatchLeft(path);
    return undefined;
  }

  #watch(node: TreeNode): boolean {
    node.watcher = { onEvent: event => this.#onEvent(node, event), onGone: () => this.#forget(node) };
    // The requested directory may be a link; links below it are entries like others.
    node.watch = this.#inotify.add(this.#pathOf(node), node.watcher, node === this.#root);
    return node.watch >= 0;
  }

  /** The kernel has one watch per directory: if it answers a different watch, a different directory is there. */
  #isInPlace(node: TreeNode): boolean {
    if (!node.watcher) return false;
    const watch = this.#inotify.add(this.#pathOf(node), node.watcher, false);
    if (watch === node.watch) return true;
    if (watch >= 0) this.#inotify.remove(watch, node.watcher);
    return false;
  }

  #forget(node: TreeNode): void {
    for (const child of node.children.values()) this.#forget(child);
    node.children.clear();
    detachNode(node);
    if (node.watcher && node.watch >= 0) this.#inotify.remove(node.watch, node.watcher);
    node.watch = -1;
    node.watcher = undefined;
  }

  #pathOf(node: TreeNode, entry = ''): Buffer {
    const name = nameIn(node, entry);
    return name === '.' ? this.#path : Buffer.concat([this.#path, Buffer.from(`/${name}`, 'latin1')]);
  }
}

function noWatchLeft(path: Buffer): AtollError {
  return new AtollError(
    'rate_limited',
    `'${path.toString()}' can't be watched: the sandbox has no inotify watch left (fs.inotify.max_user_watches)`,
  );
}
