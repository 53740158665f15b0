/**
 * A name, target or path of a file tree in memory. It has one character per byte (`latin1`), because file names need
 * not be valid UTF-8 and directories are sorted by bytes.
 */
export type ByteString = string;

/** Attributes of an inode. */
export type Attributes = {
  /** Permission bits, with setuid, setgid and sticky. */
  mode: number;
  uid: number;
  gid: number;
  /** Whole seconds and the rest in nanoseconds. */
  mtimeSeconds: number;
  mtimeNanoseconds: number;
  /** By full name, e.g. `user.comment`. */
  xattrs: ReadonlyMap<string, Uint8Array>;
};

/** The content of a file: whole blocks that are already in the image, and the rest. */
export type FileData = {
  size: number;
  firstBlock: number;
  /** The last `size % blockSize` bytes. */
  tail: Uint8Array;
};

/** A regular file. */
export type FileNode = { kind: 'file'; attributes: Attributes; data: FileData };
/** A symbolic link. */
export type SymlinkNode = { kind: 'symlink'; attributes: Attributes; target: ByteString };
/** A named pipe. */
type FifoNode = { kind: 'fifo'; attributes: Attributes };
/** Hides what lower layers have under this name: in an overlay's layer, a character device 0:0. */
type WhiteoutNode = { kind: 'whiteout' };
/** A directory with everything in it. */
export type DirectoryNode = {
  kind: 'directory';
  attributes: Attributes;
  /** Hides what lower layers have in this directory. */
  opaque: boolean;
  entries: Map<ByteString, TreeNode>;
};

/** A node that appears twice in a tree is a file with two names. */
export type TreeNode = FileNode | SymlinkNode | FifoNode | WhiteoutNode | DirectoryNode;

/**
 * Attributes of directories that no archive names: owned by root, with time 0, so that equal content has an equal
 * digest.
 */
export const defaultAttributes: Attributes = {
  mode: 0o755,
  uid: 0,
  gid: 0,
  mtimeSeconds: 0,
  mtimeNanoseconds: 0,
  xattrs: new Map(),
};

/** An empty directory. */
export function newDirectory(attributes: Attributes = defaultAttributes): DirectoryNode {
  return { kind: 'directory', attributes, opaque: false, entries: new Map() };
}
