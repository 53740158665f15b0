import { rewriteImage } from './images/image-file.ts';
import { withMessages, withNumbers } from './images/protobuf.ts';

/** Fields of `userns_entry` and `uid_gid_extent` in CRIU's images/userns.proto. */
const entry = { uidMap: 1, gidMap: 2 } as const;
const extent = { lowerFirst: 2 } as const;

/**
 * Gives the user namespace of a checkpoint another range of host IDs. All other IDs in a checkpoint are as seen
 * inside, so this is all that ties it to a slot. Our namespaces have one extent for users and one for groups.
 */
export async function mapToHostIds(from: string, to: string, baseId: number): Promise<void> {
  await rewriteImage(from, to, fields => {
    const users = withMessages(fields, entry.uidMap, map => withNumbers(map, { [extent.lowerFirst]: baseId }));
    return withMessages(users, entry.gidMap, map => withNumbers(map, { [extent.lowerFirst]: baseId }));
  });
}
