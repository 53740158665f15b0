import { lstat } from 'node:fs/promises';
import { AtollError } from '../../../base/error.ts';
import { In, type Inotify, type InotifyEvent } from './inotify.ts';
import { readEntries } from './read-entries.ts';
import { rescan } from './rescan.ts';
import type { EventType, TreeEvent } from './tree-event.ts';
import { detachNode, moveNode, nameIn, newNode, type TreeNode } from './tree-node.ts';

export type TreeListener = {
  tell(event: TreeEvent): void;
  /** Nothing more is told: a new directory can't be watched. */
  fail(error: AtollError): void;
};

/** How long a directory that was moved away may take to arrive elsewhere in the tree, milliseconds. */
const moveMs = 100;
/** File times come from a clock that runs up to a tick behind: a change told twice is better than one never told. */
const clockSlackMs = 100;

/** How often a moment is remembered while things happen, milliseconds: what a look may tell again is no older. */
const checkpointEveryMs = 500;

const comingAndGoing = In.create | In.movedTo | In.delete | In.movedFrom;

// In the order in which several meanings of one event are told.
const meanings: [mask: number, type: EventType][] = [
  [In.create | In.movedTo, 'EVENT_TYPE_CREATE'],
  [In.movedFrom | In.moveSelf, 'EVENT_TYPE_RENAME'],
  [In.attribute, 'EVENT_TYPE_CHMOD'],
  [In.modify, 'EVENT_TYPE_WRITE'],
  [In.delete | In.deleteSelf, 'EVENT_TYPE_REMOVE'],
];

/**
 * Watches a directory, or a whole tree of them, and tells what happens there. Directories that are made are entered, and what
 * was put into them before they could be watched is told too. Where events were lost, or the listener fell behind, what
 * changed since is told by looking (see `rescan`).
 */
export class TreeWatch {
  readonly #inotify: Inotify;
  readonly #path: Buffer;
  readonly #isRecursive: boolean;
  readonly #listener: TreeListener;
  readonly #root = newNode('', undefined);
  readonly #moved = new Map<number, TreeNode>();
  #release: (() => void) | undefined;
  /** `behind`: the listener asked for a pause. */
  #state: 'arming' | 'telling' | 'behind' | 'closed' = 'arming';
  /** Everything that happened before is known to the listener. Epoch milliseconds. */
  #knownMs = Date.now();
  #checkpointMs = 0;
  #isLooking = false;
  #mustLook = false;

  constructor(inotify: Inotify, path: string, isRecursive: boolean, listener: TreeListener) {
    this.#inotify = inotify;
    this.#path = Buffer.from(path);
    this.#isRecursive = isRecursive;
    this.#listener = listener;
  }

  /** Starts watching: everything that happens after this resolved is told. Throws `rate_limited` where the kernel has no watch left. */
  async arm(): Promise<void> {
    try {
      this.#release = this.#inotify.hold(() => this.#look());
      if (!this.#watch(this.#root)) throw noWatchLeft(this.#path);
      if (this.#isRecursive) await this.#enter(this.#root, false);
    } catch (error) {
      this.close();
      throw error;
    }
    if (this.#state === 'arming') this.#state = 'telling';
    if (this.#mustLook) this.#look();
  }

  close(): void {
    this.#state = 'closed';
    this.#forget(this.#root);
    for (const node of this.#moved.values()) this.#forget(node);
    this.#release?.();
    this.#release = undefined;
  }

  /** The listener has no room: nothing is told until `catchUp`. */
  fallBehind(): void {
    if (this.#state === 'telling') this.#state = 'behind';
  }

  /** Tells what has changed since the listener fell behind, then goes on as before. */
  catchUp(): void {
    if (this.#state !== 'behind') return;
    this.#state = 'telling';
    this.#look();
  }

  #look(): void {
    this.#mustLook = true;
    if (this.#isLooking || this.#state !== 'telling') return;
    this.#mustLook = false;
    this.#isLooking = true;
    const startedMs = Date.now();
    const tree = {
      root: this.#root,
      isRecursive: this.#isRecursive,
      pathOf: (node: TreeNode) => this.#pathOf(node),
      add: (parent: TreeNode, name: string) => this.#add(parent, name),
      forget: (node: TreeNode) => this.#forget(node),
      tell: (event: TreeEvent) => this.#tell(event),
    };
    void rescan(tree, this.#knownMs - clockSlackMs).catch(error => this.#fail(error)).then(() => {
      this.#isLooking = false;
      if (this.#state === 'telling') this.#knownMs = startedMs;
      if (this.#mustLook) this.#look();
    });
  }

  #tell(event: TreeEvent): void {
    if (this.#state === 'telling') this.#listener.tell(event);
  }

  #fail(error: unknown): void {
    if (this.#state === 'closed') return;
    this.close();
    this.#listener.fail(error instanceof AtollError ? error : new AtollError('internal', 'the watch failed', { cause: error }));
  }

  #onEvent(node: TreeNode, event: InotifyEvent): void {
    const { mask, name } = event;
    // Of itself only the watched directory tells: those below are told of by their parents.
    if (name === '') return node === this.#root ? this.#tellAll(mask, '.') : undefined;
    if (this.#isRecursive && mask & In.isDirectory) this.#followDirectory(node, event);
    if (mask & comingAndGoing) node.heard?.add(name);
    const wasFound = node.found.delete(name);
    if (wasFound && mask & (In.create | In.movedTo)) return;
    this.#tellAll(mask, nameIn(node, name));
    this.#checkpoint();
  }

  /** Remembers this moment as known as soon as everything that happened before it was told. */
  #checkpoint(): void {
    const nowMs = Date.now();
    if (this.#checkpointMs + checkpointEveryMs > nowMs) return;
    this.#checkpointMs = nowMs;
    this.#inotify.afterPending(wasLost => {
      if (!wasLost && !this.#isLooking && this.#state === 'telling') this.#knownMs = nowMs;
    });
  }

  #tellAll(mask: number, name: string): void {
    for (const [bits, type] of meanings) if (mask & bits) this.#tell({ name, type });
  }

  #followDirectory(parent: TreeNode, { mask, cookie, name }: InotifyEvent): void {
    const known = parent.children.get(name);
    if (mask & In.movedFrom && known) this.#awaitArrival(known, cookie);
    else if (mask & In.delete && known) this.#forget(known);
    else if (mask & In.movedTo && this.#moved.has(cookie)) this.#arrive(parent, name, cookie);
    else if (mask & (In.create | In.movedTo) && !known) {
      void this.#add(parent, name).then(node => node && this.#enter(node, true)).catch(error => this.#fail(error));
    }
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

  /** Watches all that is below `node`. With `isNew` it is told too. */
  async #enter(node: TreeNode, isNew: boolean): Promise<void> {
    node.heard = new Set();
    const entries = await readEntries(this.#pathOf(node));
    const heard = node.heard;
    node.heard = undefined;
    const unheard = isNew ? entries.filter(({ name }) => !heard.has(name)) : [];
    for (const { name } of unheard) {
      node.found.add(name);
      this.#tell({ name: nameIn(node, name), type: 'EVENT_TYPE_CREATE' });
    }
    if (unheard.length > 0) this.#inotify.afterPending(() => (node.found = new Set()));
    for (const { name, isDirectory } of entries) {
      if (!isDirectory || node.children.has(name)) continue;
      const child = await this.#add(node, name);
      if (child) await this.#enter(child, isNew);
    }
    for (const { name, isDirectory } of unheard) if (!isDirectory) await this.#tellContent(node, name);
  }

  /** A file that was found with content has been written too, perhaps before anybody listened. */
  async #tellContent(node: TreeNode, name: string): Promise<void> {
    const facts = await lstat(this.#pathOf(node, name)).catch(() => undefined);
    if (facts?.isFile() && facts.size > 0) this.#tell({ name: nameIn(node, name), type: 'EVENT_TYPE_WRITE' });
  }

  /** Undefined: there is no such directory any more. Throws where it can't be watched. */
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
    // The directory that was asked for may be a link; links below it are entries like others.
    node.watch = this.#inotify.add(this.#pathOf(node), node.watcher, node === this.#root);
    return node.watch >= 0;
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
  return new AtollError('rate_limited', `'${path.toString()}' can't be watched: the sandbox has no inotify watch left (fs.inotify.max_user_watches)`);
}
