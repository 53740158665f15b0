import { stat, statfs } from 'node:fs/promises';
import { AtollError } from '../../../base/error.ts';
import { booleanField, type Message } from '../../connect/message.ts';
import { fileError } from '../errno.ts';

/** A checked request to watch. */
export type WatchTarget = { path: string; isRecursive: boolean; includeEntry: boolean };

// Magic numbers of statfs(2): NFS, SMB, CIFS, SMB2, FUSE.
const networkTypes = [0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546];

/**
 * Reads a request. Errors: `not_found`; `invalid` if it is not a directory, or is on a mount whose remote changes the
 * kernel does not see.
 */
export async function readWatchTarget(message: Message, path: string): Promise<WatchTarget> {
  const facts = await stat(path).catch(error => Promise.reject(fileError(error, path)));
  if (!facts.isDirectory()) throw new AtollError('invalid', `path '${path}' is not a directory`);
  if (!booleanField(message, 'allowNetworkMounts')) {
    const { type } = await statfs(path);
    if (networkTypes.includes(type >>> 0)) {
      throw new AtollError(
        'invalid',
        `path '${path}' is on a network mount, where changes made elsewhere are not seen: set allowNetworkMounts ` +
          'to watch it nevertheless',
      );
    }
  }
  return {
    path,
    isRecursive: booleanField(message, 'recursive') ?? false,
    includeEntry: booleanField(message, 'includeEntry') ?? false,
  };
}
