import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { volumeImage } from './places.ts';
import { pack, unpackInto } from './tar.ts';

/** A volume that is being made has another name until it is complete. */
const volumeName = /^[0-9a-f-]{36}$/;
const volumesFolder = 'node/volumes';
/** Attempts to copy a volume in use, in the hope of a quiet moment. */
const triesMax = 3;

/**
 * Packs the image of every volume. A copy during which nothing was written equals what a loss of power at that moment
 * would have left: everything that was flushed, and a journal for the rest. Answers the volumes without such a moment.
 */
export async function packVolumes(dataDir: string, staging: string, signal?: AbortSignal): Promise<string[]> {
  const from = join(dataDir, volumesFolder);
  const restless: string[] = [];
  if (!existsSync(from)) return restless;
  mkdirSync(join(staging, 'volumes'));
  for (const volumeId of volumesIn(dataDir)) {
    const [image, file] = [join(from, volumeId, volumeImage), join(staging, 'volumes', `${volumeId}.tar`)];
    try {
      if (existsSync(image) && !(await packQuiet(from, volumeId, file, signal))) restless.push(volumeId);
    } catch (error) {
      // A volume that is deleted meanwhile is not in the backup.
      if (existsSync(image)) throw error;
      rmSync(file, { force: true });
    }
  }
  return restless;
}

/** The volumes of a data directory. */
export function volumesIn(dataDir: string): string[] {
  const folder = join(dataDir, volumesFolder);
  return existsSync(folder) ? readdirSync(folder).filter(name => volumeName.test(name)) : [];
}

async function packQuiet(
  from: string,
  volumeId: string,
  file: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const image = join(from, volumeId, volumeImage);
  const changedAt = () => statSync(image, { bigint: true }).mtimeNs;
  for (let tries = 0; tries < triesMax; tries++) {
    const before = changedAt();
    await pack(join(from, volumeId), file, { live: true, signal });
    if (changedAt() === before) return true;
  }
  return false;
}

/**
 * Unpacks the volumes of a backup and repairs their file systems as after a loss of power. Errors: `invalid` for damage
 * beyond repair.
 */
export async function restoreVolumes(unpacked: string, dataDir: string, signal?: AbortSignal): Promise<void> {
  const from = join(unpacked, 'volumes');
  if (!existsSync(from)) return;
  for (const name of readdirSync(from)) {
    const volumeId = name.replace(/\.tar$/, '');
    if (!volumeName.test(volumeId) || volumeId === name)
      throw new AtollError('invalid', `The backup is damaged: ${name} is no volume. Nothing was restored.`);
    const directory = join(dataDir, volumesFolder, volumeId);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    await unpackInto(directory, join(from, name), signal);
    await repair(join(directory, volumeImage));
  }
}

/** Source: e2fsck(8). 1 and 2 mean errors that were corrected. */
async function repair(image: string): Promise<void> {
  const child = Bun.spawn(['e2fsck', '-f', '-y', image], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
  });
  const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  if (code > 3) throw new AtollError('invalid', `The volume image ${image} can't be repaired: ${text.slice(-500)}`);
}
