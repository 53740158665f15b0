import { Type } from '@sinclair/typebox';
import { OnceHeaders } from '../../../protocol/api/sandbox.ts';
import { NewVolume, RestoredVolume, Volume, VolumeAndToken, VolumesUse } from '../../../protocol/api/volume.ts';
import { once, type OnceDeps } from '../../repeat/rules/once.ts';
import { volumeToken } from '../rules/token.ts';
import { createVolume, listTeamVolumes, readVolume, readVolumesUse, removeVolume } from '../rules/volumes.ts';
import { formatTime } from '../../../base/time.ts';
import { type RestoreDeps, restoreVolume } from '../rules/restore.ts';
import { route } from '../../http/route.ts';
import type { VolumeRecord } from '../record.ts';
import type { Db } from '../../database/db.ts';
import type { Nodes } from '../../placement/nodes.ts';
import type { RemoveVolumeDeps } from '../rules/volumes.ts';
import type { NewVolumeDeps } from '../rules/volumes.ts';
import type { VolumeTokenDeps } from '../rules/token.ts';

const params = Type.Object({ volumeID: Type.String() });

/** `GET /volumes` */
export const listVolumesRoute = route({
  operationId: 'listVolumes',
  method: 'GET',
  path: '/volumes',
  summary: 'List volumes of the team, oldest first',
  auth: 'team',
  long: true,
  responses: { 200: { description: 'The volumes', schema: Type.Array(Volume) } },
  async handle({ db }: { db: Db }, { caller }) {
    const volumes = await listTeamVolumes(db, caller.team);
    return {
      status: 200,
      body: volumes.map(({ volume, sandboxCount }) => ({
        volumeID: volume.volumeId,
        name: volume.name,
        sizeMB: volume.sizeMiB,
        sandboxCount,
        ...copyView(volume),
      })),
    };
  },
});

/** `GET /volumes/use` */
export const readVolumesUseRoute = route({
  operationId: 'getVolumesUse',
  method: 'GET',
  path: '/volumes/use',
  summary: 'Get how much room each volume of the team takes',
  auth: 'team',
  responses: { 200: { description: 'The room of those whose machine answers', schema: VolumesUse } },
  async handle(deps: { db: Db; nodes: Nodes }, { caller }) {
    const { takenBytes, isPartial } = await readVolumesUse(deps, caller.team);
    const volumes = Object.fromEntries([...takenBytes].map(([id, usedBytes]) => [id, { usedBytes }]));
    return { status: 200, body: { volumes, ...(isPartial && { partial: true }) } };
  },
});

/** `POST /volumes` */
export const createVolumeRoute = route({
  operationId: 'createVolume',
  method: 'POST',
  path: '/volumes',
  summary: 'Create an empty volume',
  auth: 'team',
  noStore: true,
  body: NewVolume,
  headers: OnceHeaders,
  responses: { 201: { description: 'The volume, with a token for its content', schema: VolumeAndToken } },
  errors: [409, 507],
  async handle(
    deps: NewVolumeDeps & OnceDeps & { domain: string; volumeTokenSeconds: number },
    { caller: { team }, headers, body: { name }, audit },
  ) {
    const key = headers['idempotency-key'];
    const made = await once(
      deps,
      { teamId: team.teamId, operation: 'createVolume', key, asked: { name } },
      async () => {
        const volume = await createVolume(deps, team, name);
        audit({ after: { name, sizeMiB: volume.sizeMiB } });
        return volumeView(deps, volume);
      },
    );
    audit({ target: `volume:${made.volumeID}` });
    return { status: 201, body: made };
  },
});

/** `GET /volumes/{volumeID}` */
export const readVolumeRoute = route({
  operationId: 'getVolume',
  method: 'GET',
  path: '/volumes/{volumeID}',
  summary: 'Get a volume, with a new token for its content',
  auth: 'team',
  role: 'developer',
  noStore: true,
  params,
  responses: { 200: { description: 'The volume', schema: VolumeAndToken } },
  errors: [404],
  async handle(deps: VolumeTokenDeps & { db: Db }, { caller, params }) {
    return { status: 200, body: volumeView(deps, await readVolume(deps.db, caller.team, params.volumeID)) };
  },
});

/** `DELETE /volumes/{volumeID}` */
export const deleteVolumeRoute = route({
  operationId: 'deleteVolume',
  method: 'DELETE',
  path: '/volumes/{volumeID}',
  summary: 'Delete a volume that no sandbox has, with its content',
  auth: 'team',
  proof: true,
  params,
  responses: { 204: { description: 'It is gone' } },
  errors: [404, 409],
  async handle(deps: RemoveVolumeDeps, { caller, params, audit }) {
    const volume = await removeVolume(deps, caller.team, params.volumeID);
    audit({ target: `volume:${volume.volumeId}`, before: { name: volume.name } });
    return { status: 204 };
  },
});

/** `POST /volumes/{volumeID}/restore` */
export const restoreVolumeRoute = route({
  operationId: 'restoreVolume',
  method: 'POST',
  path: '/volumes/{volumeID}/restore',
  summary: 'Make a volume whose machine is lost of its newest copy again, on another machine',
  auth: 'team',
  proof: true,
  params,
  responses: { 200: { description: 'It is there, as it was when it was copied', schema: RestoredVolume } },
  errors: [404, 409],
  async handle(deps: RestoreDeps, { caller, params, audit }) {
    const { volume, copiedAtUs, ageSeconds } = await restoreVolume(deps, caller.team, params.volumeID);
    const copiedAt = formatTime(copiedAtUs);
    audit({ target: `volume:${volume.volumeId}`, after: { nodeId: volume.nodeId, copiedAt } });
    return { status: 200, body: { volumeID: volume.volumeId, name: volume.name, copiedAt, ageSeconds } };
  },
});

const copyView = ({ copy }: VolumeRecord) => (copy ? { copiedAt: formatTime(copy.copiedAtUs) } : {});

function volumeView(deps: VolumeTokenDeps, volume: VolumeRecord): VolumeAndToken {
  return { volumeID: volume.volumeId, name: volume.name, token: volumeToken(deps, volume), ...copyView(volume) };
}
