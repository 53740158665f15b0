import { mkdirSync, rmSync } from 'node:fs';
import { rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { openFrames, sealedBytes, sealFrames } from '../../../base/crypto/frames.ts';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import type { Arrival, VolumeCarrier } from '../../../protocol/cluster.ts';
import type { Layout } from '../../layout.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import { archiveBytes, type ArchiveHeader, planFiles, readArchive, writeArchive } from './archive.ts';
import { admitArrival } from './admit-arrival.ts';

/** For how long a volume stays fixed, and one that came waits to be kept. Milliseconds. */
const heldMs = 60 * 60_000;
/** Volumes that are fixed at a time: a copy of one takes as much of the disk as its content. */
const fixedMax = 4;
/** What a copy must leave of the disk: running sandboxes must be able to go on writing. */
const diskReserveBytes = 1 << 30;
const image = 'disk.img';

/** In the archive of a volume: which one it is. */
type Header = ArchiveHeader<{ volumeId: string }>;

/** `folder` has its image; `end` gives it back. */
type Fixed = { folder: string; header: Header; end(): Promise<void> };

/** What volumes are carried with. */
type CarryParts = { layout: Layout; volumes: Volumes };

/** Carries volumes from machine to machine, and to a store. */
export function createVolumeCarrier({ layout, volumes }: CarryParts): VolumeCarrier {
  const arriving = emptyFolder(join(layout.data, 'arriving-volumes'));
  const copies = emptyFolder(join(layout.data, 'copies-of-volumes'));
  const fixed = new Map<string, Fixed>();
  const coming = new Set<string>();
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
      const held = await fixVolume({ volumes, copies }, volumeId, how).finally(() => fixing--);
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
    async receive(volumeId, key, sizeBytes) {
      await admitArrival(arriving, coming.size, sizeBytes, 'volume');
      const id = newUuid();
      coming.add(id);
      const folder = join(arriving, id);
      mkdirSync(folder, { mode: 0o700 });
      return arrival(volumes, { volumeId, key: Buffer.from(key, 'base64url'), folder, done: () => coming.delete(id) });
    },
  };
}

async function fixVolume(
  { volumes, copies }: { volumes: Volumes; copies: string },
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
  await requireRoom(copies, archiveBytes(headerOf(volumes.folderOf(volumeId), volumeId)));
  mkdirSync(folder, { mode: 0o700 });
  try {
    await volumes.copy(volumeId, folder);
    return { folder, header: headerOf(folder, volumeId), end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Empties a folder in which a crash may have left something, and answers it. */
function emptyFolder(path: string): string {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}

const headerOf = (folder: string, volumeId: string): Header => ({
  version: 1,
  record: { volumeId },
  agent: '',
  files: planFiles(folder, path => path !== image),
});

async function requireRoom(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize - bytes < diskReserveBytes)
    throw new AtollError('no_space', 'The disk of this machine has no room for a copy of the volume');
}

type Coming = { volumeId: string; key: Uint8Array; folder: string; done(): void };

function arrival(volumes: Volumes, { volumeId, key, folder, done }: Coming): Arrival<void> {
  let header: Header | undefined;
  const drop = async () => {
    clearTimeout(timer);
    done();
    await rm(folder, { recursive: true, force: true });
  };
  const timer = setTimeout(() => void drop(), heldMs);
  timer.unref();
  return {
    async take(bytes) {
      header = await writeArchive<{ volumeId: string }>(openFrames(key, bytes), folder).catch((error: unknown) => {
        throw error instanceof AtollError
          ? error
          : new AtollError('invalid', 'what came can not be decrypted', { cause: error });
      });
    },
    async keep() {
      try {
        if (header?.record.volumeId !== volumeId) throw new AtollError('invalid', 'what came is another volume');
        await volumes.arrive(volumeId, folder);
      } finally {
        await drop();
      }
    },
    drop,
  };
}
