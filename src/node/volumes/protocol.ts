import { AtollError } from '../../base/error.ts';
import type { VolumeProtocol } from '../../protocol/volume.ts';
import type { NodeContext } from '../context.ts';
import { pathInHelper } from '../native/helper.ts';
import { changeEntry, makeDirectory, removeEntry, statEntry } from './change-content.ts';
import { cleanPath } from './clean-path.ts';
import { beginFile, openFile } from './file-content.ts';
import { listDirectory } from './list-directory.ts';
import { createWrites } from './writes.ts';

/** The volumes of this node as the api sees them. */
export function volumeProtocolOf(node: NodeContext): VolumeProtocol {
  const { volumes, helper } = node;
  const writes = createWrites(node.layout.volumes);
  /** Carries out a call on a volume's content while it is mounted. */
  const within = async <T>(volumeId: string, work: (root: string) => Promise<T>): Promise<T> => {
    const use = await volumes.use(volumeId);
    try {
      return await work(pathInHelper(node, use.root));
    } finally {
      use.release();
    }
  };
  return {
    create: (volumeId, sizeMiB) => volumes.create(volumeId, sizeMiB),
    async remove(volumeId) {
      const users = sandboxesWith(node, volumeId);
      if (users.length > 0) throw new AtollError('conflict', `volume ${volumeId} is mounted in sandbox ${users[0]}`);
      await volumes.remove(volumeId);
    },
    list: async () => volumes.list(),
    stat: (volumeId, path) => within(volumeId, root => statEntry(root, cleanPath(path))),
    listDirectory: (volumeId, path, depth) => within(volumeId, root => listDirectory(root, cleanPath(path), depth)),
    makeDirectory: (volumeId, path, entry) => within(volumeId, root => makeDirectory(root, cleanPath(path), entry)),
    changeEntry: (volumeId, path, change) => within(volumeId, root => changeEntry(root, cleanPath(path), change)),
    async removeEntry(volumeId, path) {
      const use = await volumes.use(volumeId);
      await removeEntry(helper, node.helperBinary, use.root, cleanPath(path)).finally(() => use.release());
    },
    openRead: (volumeId, path) => within(volumeId, root => openFile(root, cleanPath(path))),
    async openWrite(volumeId, path, entry) {
      await writes.admit();
      const use = await volumes.use(volumeId);
      try {
        const file = await beginFile(pathInHelper(node, use.root), cleanPath(path), entry);
        try {
          return writes.begin(file, use);
        } catch (error) {
          await file.drop();
          throw error;
        }
      } catch (error) {
        use.release();
        throw error;
      }
    },
    keepWrite: writeId => writes.keep(writeId),
    dropWrite: writeId => writes.drop(writeId),
  };
}

function sandboxesWith(node: NodeContext, volumeId: string): string[] {
  return [...node.running.values(), ...node.paused.values()].flatMap(({ record }) =>
    record.volumes?.some(volume => volume.volumeId === volumeId) ? [record.sandboxId] : [],
  );
}
