import { join } from 'node:path';

/** What of a data directory is copied as it is. */
export const plainFiles: readonly string[] = ['node-id', 'seed', 'admin-token', 'metrics-token', 'api-key', 'images.json', 'shipped-templates.json', 'tls', 'files'];

/** What of a node's directory is packed with its owners: the authority that sandboxes trust. */
export const nodeFiles: readonly string[] = ['egress-authority'];

/** The image in the directory of a volume. */
export const volumeImage = 'disk.img';

/** The file name of a layer on its node. */
export function layerFile(digest: string): string {
  return `${digest.replace(/^sha256:/, '')}.erofs`;
}

/** What is packed of a paused sandbox's directory. Not its memory: that fits one machine and one directory. */
export const sandboxFiles = { record: 'record.json', disk: 'kept/disk.img' } as const;

/** The directory of a paused sandbox. */
export function sandboxDirectory(dataDir: string, sandboxId: string): string {
  return join(dataDir, 'node/sandboxes', sandboxId);
}
