import { AtollError } from '../../base/error.ts';
import type { SandboxVolume, VolumeProtocol } from '../../protocol/volume.ts';
import { pathInHelper, type Helper } from '../native/helper.ts';
import type { InTurn } from '../../base/concurrency/long-reads.ts';
import type { Space } from '../space/space.ts';
import { changeEntry, makeDirectory, removeEntry, statEntry } from './change-content.ts';
import { cleanPath } from './clean-path.ts';
import { beginFile, openFile } from './file-content.ts';
import { listDirectory } from './list-directory.ts';
import type { VolumeUse } from './mounted-volumes.ts';
import { createRemovals } from './removals.ts';
import type { Volumes } from './volumes.ts';
import { createWrites } from './writes.ts';

/** A sandbox and its volumes. */
type SandboxVolumes = { sandboxId: string; volumes: SandboxVolume[] };

/** What serving the volumes of a node needs. */
export type VolumeParts = {
  volumes: Volumes;
  helper: Helper;
  helperBinary: string;
  space: Pick<Space, 'require'>;
  /** Gives callers that list directories their turns. */
  inTurn: InTurn;
  /** Every sandbox of the node, whatever its state. */
  sandboxes: { records(): SandboxVolumes[] };
};

/** The volumes of this node, as the api sees them. */
export function volumeProtocolOf(parts: VolumeParts): VolumeProtocol {
  const { volumes, sandboxes } = parts;
  const writes = createWrites(parts.space);
  const removals = createRemovals();
  /** Carries out a call on a volume's content while it is mounted. */
  const within = async <T>(volumeId: string, work: (root: string, use: VolumeUse) => Promise<T>): Promise<T> => {
    const use = await volumes.use(volumeId);
    try {
      return await work(pathInHelper(parts, use.root), use);
    } finally {
      use.release();
    }
  };
  /** The same for a call that changes the content. */
  const changing = <T>(volumeId: string, work: (root: string) => Promise<T>): Promise<T> =>
    within(volumeId, (root, use) => use.change(() => work(root)).finally(() => volumes.touch(volumeId)));
  return {
    create: (volumeId, sizeMiB) => volumes.create(volumeId, sizeMiB),
    async remove(volumeId) {
      const users = sandboxesWith(sandboxes.records(), volumeId);
      if (users.length > 0) throw new AtollError('conflict', `volume ${volumeId} is mounted in sandbox ${users[0]}`);
      await volumes.remove(volumeId);
    },
    list: async () => volumes.list(),
    taken: volumeIds => volumes.taken(volumeIds),
    stat: (volumeId, path) => within(volumeId, root => statEntry(root, cleanPath(path))),
    listDirectory: (volumeId, path, depth) =>
      parts.inTurn(volumeId, () => within(volumeId, root => listDirectory(root, cleanPath(path), depth))),
    makeDirectory: (volumeId, path, entry) => changing(volumeId, root => makeDirectory(root, cleanPath(path), entry)),
    changeEntry: (volumeId, path, change) => changing(volumeId, root => changeEntry(root, cleanPath(path), change)),
    async removeEntry(volumeId, path, teamId) {
      const use = await volumes.use(volumeId);
      const inTurn = <T>(work: () => Promise<T>) => removals({ volumeId, teamId }, () => use.change(work));
      await removeEntry(parts, use.root, cleanPath(path), inTurn).finally(() => {
        volumes.touch(volumeId);
        use.release();
      });
    },
    openRead: (volumeId, path) => within(volumeId, root => openFile(root, cleanPath(path))),
    async openWrite(volumeId, path, entry) {
      using _place = writes.admit();
      const use = await volumes.use(volumeId);
      try {
        const file = await use.change(() => beginFile(pathInHelper(parts, use.root), cleanPath(path), entry));
        try {
          return writes.begin(file, { ...use, release: () => (volumes.touch(volumeId), use.release()) });
        } catch (error) {
          await use.change(() => file.drop());
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

function sandboxesWith(records: SandboxVolumes[], volumeId: string): string[] {
  return records.flatMap(({ sandboxId, volumes }) =>
    volumes.some(volume => volume.volumeId === volumeId) ? [sandboxId] : [],
  );
}
