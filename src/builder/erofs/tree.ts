/**
 * A file tree in memory, as it is written to an image. Names, targets and paths are byte strings: one character for each
 * byte (`latin1`), because file names need not be valid UTF-8 and directories are sorted by bytes.
 */
export type ByteString = string;

export type Attributes = {
  /** Permission bits with setuid, setgid and sticky. */
  mode: number;
  uid: number;
  gid: number;
  /** Whole seconds and the rest in nanoseconds. */
  mtimeSeconds: number;
  mtimeNanoseconds: number;
  /** By full name, e.g. `user.comment`. */
  xattrs: ReadonlyMap<string, Uint8Array>;
};

/** The content of a file: whole blocks that are in the image already, and the rest. */
export type FileData = {
  size: number;
  firstBlock: number;
  /** The last `size % blockSize` bytes. */
  tail: Uint8Array;
};

export type FileNode = { kind: 'file'; attributes: Attributes; data: FileData };
export type SymlinkNode = { kind: 'symlink'; attributes: Attributes; target: ByteString };
export type FifoNode = { kind: 'fifo'; attributes: Attributes };
/** Hides what lower layers have by this name: in an overlay's layer, a character device 0:0. */
export type WhiteoutNode = { kind: 'whiteout' };
export type DirectoryNode = {
  kind: 'directory';
  attributes: Attributes;
  /** Hides what lower layers have in this directory. */
  opaque: boolean;
  entries: Map<ByteString, TreeNode>;
};

/** A node that appears twice in a tree is a file with two names. */
export type TreeNode = FileNode | SymlinkNode | FifoNode | WhiteoutNode | DirectoryNode;

export const defaultAttributes: Attributes = { mode: 0o755, uid: 0, gid: 0, mtimeSeconds: 0, mtimeNanoseconds: 0, xattrs: new Map() };

export function newDirectory(attributes: Attributes = defaultAttributes): DirectoryNode {
  return { kind: 'directory', attributes, opaque: false, entries: new Map() };
}
