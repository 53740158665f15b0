import { AtollError } from '../../base/error.ts';
import {
  blockSize,
  dataLayout,
  encodeEntries,
  encodeInode,
  entriesSize,
  fileTypes,
  inodeSize,
  roundUp,
  slotSize,
  splitEntries,
} from './format.ts';
import { defaultAttributes, type Attributes, type ByteString, type DirectoryNode, type TreeNode } from './tree.ts';

/** An inode and its place in the image. */
export type PlannedInode = {
  node: TreeNode;
  number: number;
  parent: PlannedInode | undefined;
  children: { name: ByteString; inode: PlannedInode }[];
  links: number;
  /** Bytes of data. */
  size: number;
  layout: number;
  /** First block of the data that is not inline; for directories and links it is set when they are written. */
  firstBlock: number;
  /** Byte offset from the beginning of the meta area. */
  offset: number;
  /** Bytes of data right behind the inode. */
  inlineSize: number;
};

/** Slot 0 would give inode number 0, which readers of directories take for a deleted entry. */
export const rootSlot = inodeSize / slotSize;

/** Gives every inode of a tree its place; the root comes first, because its slot must fit into 16 bits. */
export function planTree(root: DirectoryNode, inodesMax: number): PlannedInode[] {
  const byNode = new Map<TreeNode, PlannedInode>();
  const plan: PlannedInode[] = [];
  const add = (node: TreeNode, parent: PlannedInode | undefined): PlannedInode => {
    const known = byNode.get(node);
    if (known) {
      known.links++;
      return known;
    }
    if (plan.length >= inodesMax) throw new AtollError('no_space', `the layer has more than ${inodesMax} files`);
    const inode = {
      node,
      parent,
      number: plan.length + 1,
      children: [],
      links: 1,
      size: 0,
      layout: 0,
      firstBlock: 0,
      offset: 0,
      inlineSize: 0,
    };
    byNode.set(node, inode);
    plan.push(inode);
    return inode;
  };
  add(root, undefined);
  let end = rootSlot * slotSize;
  // Breadth first: the plan grows while it is traversed.
  for (const inode of plan) {
    const { node } = inode;
    if (node.kind === 'directory') {
      inode.children = [...node.entries]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, child]) => ({ name: checkedName(name), inode: add(child, inode) }));
      inode.links = 2 + inode.children.filter(child => child.inode.node.kind === 'directory').length;
    }
    end = place(inode, end);
  }
  return plan;
}

/** The kernel's limit of a name (NAME_MAX). */
const nameBytesMax = 255;

/**
 * The name, if a directory can hold it. A name longer than a block would continue where the next entries are expected:
 * the kernel would take its bytes for entries, and what they name for files. Errors: `invalid`.
 */
function checkedName(name: ByteString): ByteString {
  if (name.length > nameBytesMax)
    throw new AtollError('invalid', `a name of the layer is longer than ${nameBytesMax} bytes: ${shown(name)}…`);
  if (name === '' || name === '.' || name === '..' || name.includes('/') || name.includes('\0'))
    throw new AtollError('invalid', `a name of the layer is none that a file can have: ${JSON.stringify(shown(name))}`);
  return name;
}

function shown(name: ByteString): string {
  return Buffer.from(name, 'latin1').toString().slice(0, 100);
}

/** Inline data must end in the block where its inode begins. */
function place(inode: PlannedInode, end: number): number {
  const head = encodeHead(inode).length;
  inode.size = sizeOf(inode);
  const rest = inode.size % blockSize;
  const inline = inode.node.kind === 'file' ? inode.node.data.tail.length > 0 : rest > 0 && head + rest <= blockSize;
  inode.layout = inline ? dataLayout.inline : dataLayout.plain;
  inode.inlineSize = inline ? rest : 0;
  if (inode.node.kind === 'file') inode.firstBlock = inode.node.data.firstBlock;
  const room = blockSize - (end % blockSize);
  inode.offset = inline && head + rest > room ? roundUp(end, blockSize) : end;
  return roundUp(inode.offset + head + inode.inlineSize, inodeSize);
}

function sizeOf({ node, children }: PlannedInode): number {
  if (node.kind === 'file') return node.data.size;
  if (node.kind === 'symlink') return node.target.length;
  if (node.kind === 'directory')
    return entriesSize(splitEntries(withDots<{ name: ByteString }>(children, { name: '.' }, { name: '..' })));
  return 0;
}

/** The inode with its extended attributes. */
export function encodeHead({ node, layout, size, firstBlock, links, number }: PlannedInode): Uint8Array {
  return encodeInode({
    typeBits: fileTypes[node.kind].modeBits,
    attributes: attributesOf(node),
    layout,
    size,
    firstBlock,
    links,
    number,
  });
}

const opaqueXattr = ['trusted.overlay.opaque', Buffer.from('y')] as const;

function attributesOf(node: TreeNode): Attributes {
  if (node.kind === 'whiteout') return { ...defaultAttributes, mode: 0 };
  if (node.kind !== 'directory' || !node.opaque) return node.attributes;
  return { ...node.attributes, xattrs: new Map([...node.attributes.xattrs, opaqueXattr]) };
}

/** The data of a link or a directory, in blocks. */
export function encodeData(inode: PlannedInode): Uint8Array[] {
  const { node, parent, children } = inode;
  if (node.kind === 'symlink') return [Buffer.from(node.target, 'latin1')];
  if (node.kind !== 'directory') return [];
  const entries = withDots(children, { name: '.', inode }, { name: '..', inode: parent ?? inode }).map(entry => ({
    name: entry.name,
    slot: entry.inode.offset / slotSize,
    type: fileTypes[entry.inode.node.kind].entryType,
  }));
  return splitEntries(entries).map(encodeEntries);
}

/** Readers search by bytes: the dots have no special place. */
function withDots<T extends { name: ByteString }>(children: T[], ...dots: T[]): T[] {
  return [...dots, ...children].sort((a, b) => (a.name < b.name ? -1 : 1));
}
