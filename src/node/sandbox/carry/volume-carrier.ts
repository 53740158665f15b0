import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sealedBytes, sealFrames } from '../../../base/crypto/frames.ts';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import type { VolumeCarrier } from '../../../protocol/cluster.ts';
import type { Layout } from '../../layout.ts';
import type { Space } from '../../space/space.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import { archiveBytes, type ArchiveHeader, planFiles, readArchive } from './archive.ts';
import { Arrivals, emptyFolder } from './arrivals.ts';

/** How long a volume stays fixed. Milliseconds. */
const heldMs = 60 * 60_000;
/** How many volumes are fixed at a time: a copy of one takes as much of the disk as its content. */
const fixedMax = 4;
const image = 'disk.img';

/** Identifies the volume in its archive. */
type VolumeRecord = { volumeId: string };
type Header = ArchiveHeader<VolumeRecord>;

/** `folder` has the volume's image; `end` gives it back. */
type Fixed = { folder: string; header: Header; end(): Promise<void> };

/** What carrying volumes needs. */
type CarryParts = { layout: Layout; volumes: Volumes; space: Pick<Space, 'reserve'> };

/** Carries volumes from machine to machine, and to a store. */
export function createVolumeCarrier({ layout, volumes, space }: CarryParts): VolumeCarrier {
  const arrivals = new Arrivals(join(layout.data, 'arriving-volumes'), 'volume', space);
  const copies = emptyFolder(join(layout.data, 'copies-of-volumes'));
  const fixed = new Map<string, Fixed>();
  const find = (fixedId: string) => {
    const found = fixed.get(fixedId);
    if (found) return found;
    throw new AtollError('not_found', 'The content of the volume is not held any more');
  };
  let fixing = 0;

  return {
    states: async () => volumes.states(),
    async fix(volumeId, how) {
      if (fixed.size + fixing >= fixedMax)
        throw new AtollError('unavailable', `${fixedMax} volumes leave this node, which is the most at a time`, {
          retryAfterSeconds: 2,
        });
      fixing++;
      const held = await fixVolume({ volumes, space, copies }, volumeId, how).finally(() => fixing--);
      const fixedId = newUuid();
      const timer = setTimeout(
        () =>
          void fixed
            .get(fixedId)
            ?.end()
            .catch(() => {}),
        heldMs,
      );
      timer.unref();
      const end = async () => {
        clearTimeout(timer);
        if (fixed.delete(fixedId)) await held.end();
      };
      fixed.set(fixedId, { ...held, end });
      return { fixedId, sizeBytes: sealedBytes(archiveBytes(held.header)) };
    },
    requireFixed: async fixedId => void find(fixedId),
    release: async fixedId => fixed.get(fixedId)?.end(),
    async send(fixedId, key) {
      const { folder, header } = find(fixedId);
      return {
        sizeBytes: sealedBytes(archiveBytes(header)),
        bytes: sealFrames(Buffer.from(key, 'base64url'), readArchive(folder, header)),
      };
    },
    receive: (volumeId, key, sizeBytes) =>
      arrivals.receive<VolumeRecord, void>({
        key,
        sizeBytes,
        async keep({ record }, folder) {
          if (record.volumeId !== volumeId) throw new AtollError('invalid', 'what came is another volume');
          await volumes.arrive(volumeId, folder);
        },
      }),
  };
}

async function fixVolume(
  { volumes, space, copies }: Pick<CarryParts, 'volumes' | 'space'> & { copies: string },
  volumeId: string,
  how: 'copy' | 'seal',
): Promise<Fixed> {
  if (how === 'seal') {
    await volumes.seal(volumeId);
    const folder = volumes.folderOf(volumeId);
    return { folder, header: headerOf(folder, volumeId), end: async () => volumes.unseal(volumeId) };
  }
  const folder = join(copies, newUuid());
  const end = () => rm(folder, { recursive: true, force: true });
  // Running sandboxes must be able to go on writing.
  const sizeBytes = archiveBytes(headerOf(volumes.folderOf(volumeId), volumeId));
  using _room = space.reserve('a copy of the volume', sizeBytes);
  mkdirSync(folder, { mode: 0o700 });
  try {
    await volumes.copy(volumeId, folder);
    return { folder, header: headerOf(folder, volumeId), end };
  } catch (error) {
    await end();
    throw error;
  }
}

const headerOf = (folder: string, volumeId: string): Header => ({
  version: 1,
  record: { volumeId },
  agent: '',
  files: planFiles(folder, path => path !== image),
});
