/** A volume as a sandbox has it. */
export type SandboxVolume = {
  /** UUID. */
  volumeId: string;
  /** Mount point: absolute and clean. */
  path: string;
};

/**
 * `detail` and `error_code` of errors about memory that can't be restored, because others have changed what it has open
 * in volumes.
 */
export const volumeChanged = 'sandbox_volume_changed';

/** A volume that is on a node. */
export type NodeVolume = {
  volumeId: string;
  createdAtMs: number;
  /** Size to which its image may grow; absent where the node does not say so, and where there is no image. */
  sizeMiB?: number;
};

/** Types of a volume's entries. `unknown`: a FIFO, socket or device, whose content is never touched. */
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
  /** Target of a symlink. */
  target?: string;
};

/** Attributes of an entry to make in a volume. */
export type NewVolumeEntry = {
  uid: number;
  gid: number;
  /** Permission bits; no umask applies. */
  mode: number;
  /** Makes missing parents, with the same owner, and replaces what is there. */
  force: boolean;
};

/**
 * The volumes of a node. Paths start at the volume's root, with or without a slash. Symlinks on the way are followed
 * inside of the volume; a path that leads out of it is `not_found`. Every call for a volume that is not here answers
 * `not_found`.
 */
export type VolumeProtocol = {
  /**
   * Makes an empty volume of `sizeMiB`. Another call for the same volume changes nothing. Errors: `no_space`,
   * `internal`.
   */
  create(volumeId: string, sizeMiB: number): Promise<void>;

  /**
   * Deletes a volume with its content. Succeeds for one that is not here. Errors: `conflict` while a sandbox, running
   * or paused, has it.
   */
  remove(volumeId: string): Promise<void>;

  list(): Promise<NodeVolume[]>;

  /** Bytes that each of the volumes takes on its machine now, by ID; volumes that are not here are left out. */
  taken(volumeIds: string[]): Promise<Record<string, number>>;

  /** The entry at `path`; describes a symlink itself. Errors: `not_found`. */
  stat(volumeId: string, path: string): Promise<VolumeEntry>;

  /**
   * The entries of a directory and, down to `depth` levels, below it: each directory, then its children by name.
   * Errors: `not_found`, `invalid` (not a directory, too many entries).
   */
  listDirectory(volumeId: string, path: string, depth: number): Promise<VolumeEntry[]>;

  /**
   * Makes a directory. Errors: `conflict` (something is there), `not_found` (a parent is missing), `invalid` (a parent
   * is not a directory), `no_space`.
   */
  makeDirectory(volumeId: string, path: string, entry: NewVolumeEntry): Promise<VolumeEntry>;

  /** Changes the given attributes. Follows a symlink. Errors: `not_found`. */
  changeEntry(
    volumeId: string,
    path: string,
    change: { uid?: number; gid?: number; mode?: number },
  ): Promise<VolumeEntry>;

  /**
   * Removes an entry with everything below it; removes a symlink itself. Teams take turns, by `teamId`. Errors:
   * `not_found`, `invalid` for the root.
   */
  removeEntry(volumeId: string, path: string, teamId?: string): Promise<void>;

  /**
   * A descriptor to read a file's content in order; the caller owns it. It gives `sizeBytes`, or fewer where the file
   * is shortened meanwhile. Errors: `not_found`, `invalid` (not a regular file), `unavailable` (a sandbox has a lease
   * on it).
   */
  openRead(volumeId: string, path: string): Promise<{ sizeBytes: number; descriptor: number }>;

  /**
   * Begins a file: the caller writes its content, in order, to the descriptor, which the caller owns. `keepWrite` puts
   * the whole file at `path`; until then the old one stays. A file is dropped if it is not ended within an hour, or
   * before the caller's connection closes. Errors: those of `makeDirectory`, `unavailable` (too many at a time).
   */
  openWrite(volumeId: string, path: string, entry: NewVolumeEntry): Promise<{ writeId: string; descriptor: number }>;

  /**
   * Ends a file of `sizeBytes` bytes and puts it in place; it then survives a crash of the host. Errors: `conflict`,
   * `no_space`, `unavailable` (not all bytes have come, or the file was dropped).
   */
  keepWrite(writeId: string, sizeBytes: number): Promise<VolumeEntry>;

  /**
   * Drops a file that was begun. Errors: `not_found` (ended already), `no_space` where writing failed for that reason.
   */
  dropWrite(writeId: string): Promise<void>;
};
