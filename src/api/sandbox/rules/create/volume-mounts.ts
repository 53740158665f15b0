import { AtollError } from '../../../../base/error.ts';
import type { VolumeMount } from '../../../../protocol/api/sandbox.ts';
import { platformDirectories } from '../../../../protocol/template/platform-directories.ts';
import { listVolumes } from '../../../volume/store/volumes.ts';
import type { MountedVolume } from '../../record.ts';
import type { TeamRecord } from '../../../team/record.ts';
import type { VolumeRecord } from '../../../volume/record.ts';
import type { Features } from '../../features.ts';
import type { Db } from '../../../database/db.ts';

/** Volumes of one sandbox. */
const mountsMax = 16;
/** The longest path that native/root.c can walk. */
const pathBytesMax = 500;
/** Places that the platform itself uses in every sandbox. */
const reserved = platformDirectories.map(name => `/${name}`);

/** The mounts that sandboxes inherit from their snapshot, except where the request has another at the same path. */
export const inheritedMounts = (taken: readonly MountedVolume[], asked: readonly VolumeMount[]): MountedVolume[] =>
  taken.filter(({ path }) => !asked.some(mount => mount.path === path));

/**
 * The volumes of a sandbox: those in the request, and those inherited from the snapshot that it is made from. One
 * `invalid` reports all problems.
 */
export async function resolveVolumeMounts(
  { db, features }: { db: Db; features: Features },
  team: TeamRecord,
  asked: VolumeMount[],
  { nodeId, inherited }: { nodeId: string; inherited: readonly MountedVolume[] },
): Promise<MountedVolume[]> {
  if (asked.length === 0 && inherited.length === 0) return [];
  if (asked.length > mountsMax)
    throw new AtollError('invalid', `volumeMounts: ${asked.length} volumes, the most is ${mountsMax}`);
  const problems = problemsOf(asked);
  if (!features.volumes) problems.push('volumeMounts: volumes are not available in this installation');
  const known = await listVolumes(db, team.teamId);
  const mounts: MountedVolume[] = [];
  const add = (volume: VolumeRecord | undefined, path: string, problem: string) => {
    if (!volume) problems.push(problem);
    else if (volume.nodeId !== nodeId)
      problems.push(
        `volumeMounts: the volumes are on different machines ("${volume.name}" on another one than the first): a ` +
          'sandbox gets those of one machine',
      );
    else mounts.push({ volumeId: volume.volumeId, name: volume.name, path });
  };
  for (const [index, { name, path }] of asked.entries()) {
    if (name !== '')
      add(
        known.find(volume => volume.name === name),
        path,
        `volumeMounts[${index}].name: the team has no volume "${name}"`,
      );
  }
  for (const { volumeId, name, path } of inherited) {
    const problem =
      `volumeMounts: the snapshot was taken with volume "${name}" at "${path}", which is not there any more: ` +
      'give another one for this path';
    add(
      known.find(volume => volume.volumeId === volumeId),
      path,
      problem,
    );
  }
  if (mounts.length > mountsMax) problems.push(`volumeMounts: ${mounts.length} volumes, the most is ${mountsMax}`);
  if (problems.length > 0) throw new AtollError('invalid', problems.join('; '));
  return mounts;
}

/** The machine that has a sandbox's volumes; undefined where it has none, or their machine is unknown. */
export async function homeOfVolumes(
  { db }: { db: Db },
  team: TeamRecord,
  asked: readonly VolumeMount[],
  inherited: readonly MountedVolume[],
): Promise<string | undefined> {
  if (asked.length === 0 && inherited.length === 0) return undefined;
  const names = new Set(asked.map(({ name }) => name));
  // By ID: another volume may have the name by now.
  const ids = new Set(inherited.map(({ volumeId }) => volumeId));
  return (await listVolumes(db, team.teamId)).find(({ name, volumeId }) => names.has(name) || ids.has(volumeId))
    ?.nodeId;
}

function problemsOf(mounts: VolumeMount[]): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const [index, { name, path }] of mounts.entries()) {
    const field = `volumeMounts[${index}]`;
    if (name === '') problems.push(`${field}.name: must not be empty`);
    if (Buffer.byteLength(path) > pathBytesMax) {
      problems.push(`${field}.path: ${Buffer.byteLength(path)} bytes, the most is ${pathBytesMax}`);
    } else if (/[\]:\\"\p{Cc}]/u.test(path)) {
      problems.push(`${field}.path: must hold no "]", ":", quote, backslash or control character`);
    } else if (
      !path.startsWith('/') ||
      (path !== '/' &&
        path
          .slice(1)
          .split('/')
          .some(part => part === '' || part === '.' || part === '..'))
    ) {
      problems.push(`${field}.path: must be absolute and clean (no ".", "..", "//" or trailing "/")`);
    } else if (seen.has(path)) {
      problems.push(`${field}.path: "${path}" is given twice`);
    } else if (path === '/' || reserved.some(place => path === place || path.startsWith(`${place}/`))) {
      problems.push(`${field}.path: "${path}" is a place of the system`);
    }
    seen.add(path);
  }
  return problems;
}
