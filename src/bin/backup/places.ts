import { join } from 'node:path';

/** What of a data directory is copied as it is. */
export const plainFiles: readonly string[] = ['node-id', 'seed', 'admin-token', 'api-key', 'images.json', 'tls', 'files'];

/** What of a node's directory is packed with its owners: the authority that sandboxes trust, and volumes. */
export const nodeFiles: readonly string[] = ['egress-authority', 'volumes'];

/** The file name of a layer on its node. */
export function layerFile(digest: string): string {
  return `${digest.replace(/^sha256:/, '')}.erofs`;
}

/** What a node keeps of a paused sandbox. */
export function sandboxFiles(dataDir: string, sandboxId: string): { record: string; disk: string } {
  const directory = join(dataDir, 'node/sandboxes', sandboxId);
  return { record: join(directory, 'record.json'), disk: join(directory, 'kept/disk.img') };
}
