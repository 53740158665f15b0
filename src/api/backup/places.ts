import { join } from 'node:path';

/** The uploaded archives, a directory for each team. */
export const uploadedFiles = 'files';

/** Files of a data directory that a backup copies unchanged. */
export const plainFiles: readonly string[] = [
  'node-id',
  'seed',
  'admin-token',
  'metrics-token',
  'api-key',
  'images.json',
  'shipped-templates.json',
  'tls',
  uploadedFiles,
];

/** Files of a node's directory that are packed with their owners: the authority that sandboxes trust. */
export const nodeFiles: readonly string[] = ['egress-authority'];

/** The image in the directory of a volume. */
export const volumeImage = 'disk.img';

/** The file name of a layer on its node. */
export function layerFile(digest: string): string {
  return `${digest.replace(/^sha256:/, '')}.erofs`;
}

/** Files of a paused sandbox that are packed, without its memory, which fits one machine and one directory only. */
export const sandboxFiles = { record: 'record.json', disk: 'kept/disk.img' } as const;

/** The directory of a paused sandbox. */
export function sandboxDirectory(dataDir: string, sandboxId: string): string {
  return join(dataDir, 'node/sandboxes', sandboxId);
}
