import { Type } from '@sinclair/typebox';
import { formatTime } from '../../base/time.ts';
import { Orphans, SandboxAdoption } from '../../protocol/api/orphan.ts';
import { NewVolume } from '../../protocol/api/volume.ts';
import { teamForAdmin } from '../app/admin.ts';
import { adoptSandbox, adoptVolume, discardSandbox, discardVolume, forgetUnknown, listOrphans } from '../app/orphans.ts';
import { route } from './route.ts';

const sandboxParams = Type.Object({ sandboxID: Type.String() });
const volumeParams = Type.Object({ volumeID: Type.String() });
const microsPerMs = 1000;

export const listOrphansRoute = route({
  operationId: 'adminListOrphans',
  method: 'GET',
  path: '/admin/orphans',
  summary: 'What nodes keep that the store does not know',
  auth: 'admin',
  responses: { 200: { description: 'Sandboxes that are set aside, and volumes', schema: Orphans } },
  async handle(app) {
    const { sandboxes, volumes } = await listOrphans(app);
    return {
      status: 200,
      body: {
        sandboxes: sandboxes.map(({ sandboxId, nodeId, known, sinceMs, reason }) => ({
          sandboxID: sandboxId,
          nodeID: nodeId,
          ...(known && { templateID: known.image.templateId }),
          setAsideAt: formatTime(Math.round(sinceMs) * microsPerMs),
          reason,
        })),
        volumes: volumes.map(({ volumeId, nodeId, createdAtMs }) => ({ volumeID: volumeId, nodeID: nodeId, createdAt: formatTime(Math.round(createdAtMs) * microsPerMs) })),
      },
    };
  },
});

export const adoptSandboxRoute = route({
  operationId: 'adminAdoptSandbox',
  method: 'POST',
  path: '/admin/orphans/sandboxes/{sandboxID}/adopt',
  summary: 'Give a sandbox that is set aside to a team, as a paused one',
  auth: 'admin',
  params: sandboxParams,
  body: SandboxAdoption,
  responses: { 204: { description: 'The team has it' } },
  errors: [404, 409],
  async handle(app, { params, body, note }) {
    note({ target: `sandbox:${params.sandboxID}`, after: { teamId: body.teamID } });
    await adoptSandbox(app, await teamForAdmin(app, body.teamID), params.sandboxID);
    return { status: 204 };
  },
});

export const discardSandboxRoute = route({
  operationId: 'adminDiscardSandbox',
  method: 'DELETE',
  path: '/admin/orphans/sandboxes/{sandboxID}',
  summary: 'Remove a sandbox that is set aside, with all that it has kept',
  auth: 'admin',
  params: sandboxParams,
  responses: { 204: { description: 'It is gone' } },
  errors: [404],
  async handle(app, { params, note }) {
    note({ target: `sandbox:${params.sandboxID}` });
    await discardSandbox(app, params.sandboxID);
    return { status: 204 };
  },
});

export const adoptVolumeRoute = route({
  operationId: 'adminAdoptVolume',
  method: 'POST',
  path: '/admin/orphans/volumes/{volumeID}/adopt/{teamID}',
  summary: 'Give a volume that the store does not know to a team',
  auth: 'admin',
  params: Type.Object({ volumeID: Type.String(), teamID: Type.String() }),
  body: NewVolume,
  responses: { 204: { description: 'The team has it, by this name' } },
  errors: [404],
  async handle(app, { params, body, note }) {
    note({ target: `volume:${params.volumeID}`, after: { teamId: params.teamID, name: body.name } });
    await adoptVolume(app, await teamForAdmin(app, params.teamID), params.volumeID, body.name);
    return { status: 204 };
  },
});

export const discardVolumeRoute = route({
  operationId: 'adminDiscardVolume',
  method: 'DELETE',
  path: '/admin/orphans/volumes/{volumeID}',
  summary: 'Remove a volume that the store does not know, with its content',
  auth: 'admin',
  params: volumeParams,
  responses: { 204: { description: 'It is gone' } },
  errors: [404, 409],
  async handle(app, { params, note }) {
    note({ target: `volume:${params.volumeID}` });
    await discardVolume(app, params.volumeID);
    return { status: 204 };
  },
});

export const forgetUnknownRoute = route({
  operationId: 'adminForgetUnknown',
  method: 'POST',
  path: '/admin/orphans/forget-unknown',
  summary: 'Let layers and memory go that the database does not know, after an older one was accepted',
  auth: 'admin',
  responses: { 204: { description: 'They are deleted soon' } },
  async handle(app, { note }) {
    note({ target: 'installation:this' });
    await forgetUnknown(app);
    return { status: 204 };
  },
});
