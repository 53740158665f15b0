import { Type } from '@sinclair/typebox';
import { NewVolume, Volume, VolumeAndToken } from '../../protocol/api/volume.ts';
import type { App } from '../app/context.ts';
import { volumeToken } from '../app/volume-token.ts';
import { createVolume, listTeamVolumes, readVolume, removeVolume } from '../app/volumes.ts';
import type { VolumeRecord } from '../store/volumes.ts';
import { route } from './route.ts';

const params = Type.Object({ volumeID: Type.String() });

export const listVolumesRoute = route({
  operationId: 'listVolumes',
  method: 'GET',
  path: '/volumes',
  summary: 'The volumes of the team, the oldest first',
  auth: 'team',
  responses: { 200: { description: 'The volumes', schema: Type.Array(Volume) } },
  async handle(app, { caller }) {
    const volumes = await listTeamVolumes(app, caller.team);
    return { status: 200, body: volumes.map(({ volumeId, name }) => ({ volumeID: volumeId, name })) };
  },
});

export const createVolumeRoute = route({
  operationId: 'createVolume',
  method: 'POST',
  path: '/volumes',
  summary: 'A new, empty volume',
  auth: 'team',
  noStore: true,
  body: NewVolume,
  responses: { 201: { description: 'The volume, with a token for its content', schema: VolumeAndToken } },
  errors: [503, 507],
  async handle(app, { caller, body, note }) {
    const volume = await createVolume(app, caller.team, body.name);
    note({ target: `volume:${volume.volumeId}`, after: { name: volume.name, sizeMiB: volume.sizeMiB } });
    return { status: 201, body: volumeView(app, volume) };
  },
});

export const readVolumeRoute = route({
  operationId: 'getVolume',
  method: 'GET',
  path: '/volumes/{volumeID}',
  summary: 'A volume, with a fresh token for its content',
  auth: 'team',
  noStore: true,
  params,
  responses: { 200: { description: 'The volume', schema: VolumeAndToken } },
  errors: [400, 404],
  async handle(app, { caller, params }) {
    return { status: 200, body: volumeView(app, await readVolume(app, caller.team, params.volumeID)) };
  },
});

export const deleteVolumeRoute = route({
  operationId: 'deleteVolume',
  method: 'DELETE',
  path: '/volumes/{volumeID}',
  summary: 'Delete a volume that no sandbox has, with its content',
  auth: 'team',
  params,
  responses: { 204: { description: 'It is gone' } },
  errors: [400, 404, 409],
  async handle(app, { caller, params, note }) {
    const volume = await removeVolume(app, caller.team, params.volumeID);
    note({ target: `volume:${volume.volumeId}`, before: { name: volume.name } });
    return { status: 204 };
  },
});

function volumeView(app: App, volume: VolumeRecord): VolumeAndToken {
  return { volumeID: volume.volumeId, name: volume.name, token: volumeToken(app, volume) };
}
