/** A volume as a sandbox has it. */
export type SandboxVolume = {
  /** UUID. */
  volumeId: string;
  /** Where it is mounted: absolute and clean. */
  path: string;
};

/** A volume that is on a node. */
export type NodeVolume = { volumeId: string; createdAtMs: number };

/** What an entry of a volume can be. `unknown`: a FIFO, socket or device, whose content is never touched. */
export const volumeEntryTypes = ['unknown', 'file', 'directory', 'symlink'] as const;
export type VolumeEntryType = (typeof volumeEntryTypes)[number];

/** Something in a volume. Owners are as sandboxes see them. */
export type VolumeEntry = {
  name: string;
  type: VolumeEntryType;
  /** Absolute, from the volume's root. */
  path: string;
  sizeBytes: number;
  /** Permission bits. */
  mode: number;
  uid: number;
  gid: number;
  accessedAtMs: number;
  modifiedAtMs: number;
  changedAtMs: number;
  /** Of a symlink. */
  target?: string;
};

export type NewVolumeEntry = {
  uid: number;
  gid: number;
  /** Permission bits; no umask applies. */
  mode: number;
  /** Makes missing parents, with the same owner, and takes the place of what is there. */
  force: boolean;
};

/**
 * The volumes of a node. Paths of content are rooted at the volume's root whether or not they begin with a slash. Symlinks on
 * the way are followed inside of the volume; what lies behind one that leads out of it is `not_found`.
 * Every call on a volume that is not here answers `not_found`.
 */
export type VolumeProtocol = {
  /** Makes an empty volume that holds up to `sizeMiB`. Asking again is fine. Errors: `no_space`, `internal`. */
  create(volumeId: string, sizeMiB: number): Promise<void>;

  /** Deletes a volume with its content. One that is not here is gone already. Errors: `conflict` while a sandbox, running or paused, has it. */
  remove(volumeId: string): Promise<void>;

  list(): Promise<NodeVolume[]>;

  /** What is at `path`; of a symlink, itself. Errors: `not_found`. */
  stat(volumeId: string, path: string): Promise<VolumeEntry>;

  /** What is in a directory and, up to `depth` levels, below it: each directory followed by its children, in the order of their names. Errors: `not_found`, `invalid` (no directory, too many entries). */
  listDirectory(volumeId: string, path: string, depth: number): Promise<VolumeEntry[]>;

  /** Errors: `conflict` (something is there), `not_found` (a parent is missing), `invalid` (a parent is no directory), `no_space`. */
  makeDirectory(volumeId: string, path: string, entry: NewVolumeEntry): Promise<VolumeEntry>;

  /** Changes what is given. A symlink is followed. Errors: `not_found`. */
  changeEntry(volumeId: string, path: string, change: { uid?: number; gid?: number; mode?: number }): Promise<VolumeEntry>;

  /** Removes an entry with all below it; a symlink itself. Errors: `not_found`, `invalid` for the root. */
  removeEntry(volumeId: string, path: string): Promise<void>;

  /**
   * A descriptor, which the caller now owns, from which the content of a file is read in order: `sizeBytes`, or fewer where
   * the file is shortened meanwhile. Errors: `not_found`, `invalid` (no regular file), `unavailable` (a sandbox has a lease on it).
   */
  openRead(volumeId: string, path: string): Promise<{ sizeBytes: number; descriptor: number }>;

  /**
   * Begins a file: its content is to be written, in order, to the descriptor, which the caller now owns. It is at `path` once
   * `keepWrite` ended it, whole; before, and if that never happens, what was there stays. One that is not ended in an hour is dropped.
   * Errors: those of `makeDirectory`, `unavailable` (too many at a time).
   */
  openWrite(volumeId: string, path: string, entry: NewVolumeEntry): Promise<{ writeId: string; descriptor: number }>;

  /** Ends a file that was begun and puts it in its place; it survives a crash of the host. Errors: `not_found` (ended already), `conflict`, `no_space`. */
  keepWrite(writeId: string): Promise<VolumeEntry>;

  /** Ends a file that was begun, and nothing of it stays. Errors: `not_found` (ended already). */
  dropWrite(writeId: string): Promise<void>;
};
