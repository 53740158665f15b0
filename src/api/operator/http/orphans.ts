import { Type } from '@sinclair/typebox';
import { formatTime } from '../../../base/time.ts';
import { Orphans, SandboxAdoption } from '../../../protocol/api/orphan.ts';
import { NewVolume } from '../../../protocol/api/volume.ts';
import { teamForAdmin } from '../workflows/team-actions.ts';
import {
  adoptSandbox,
  adoptVolume,
  discardSandbox,
  discardVolume,
  forgetUnknown,
  listOrphans,
} from '../rules/orphans.ts';
import { route } from '../../http/route.ts';
import type { AdoptDeps } from '../rules/orphans.ts';
import type { AdoptVolumeDeps } from '../rules/orphans.ts';
import type { Db } from '../../database/db.ts';
import type { OrphanDeps } from '../rules/orphans.ts';

const sandboxParams = Type.Object({ sandboxID: Type.String() });
const volumeParams = Type.Object({ volumeID: Type.String() });
const microsPerMs = 1000;

/** `GET /admin/orphans` */
export const listOrphansRoute = route({
  operationId: 'adminListOrphans',
  method: 'GET',
  path: '/admin/orphans',
  summary: 'List orphans: sandboxes and volumes that the database does not know',
  auth: 'admin',
  responses: { 200: { description: 'Sandboxes that are set aside, and volumes', schema: Orphans } },
  async handle(deps: OrphanDeps) {
    const { sandboxes, volumes, unanswered } = await listOrphans(deps);
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
        volumes: volumes.map(({ volumeId, nodeId, createdAtMs }) => ({
          volumeID: volumeId,
          nodeID: nodeId,
          createdAt: formatTime(Math.round(createdAtMs) * microsPerMs),
        })),
        ...(unanswered.length > 0 && { unansweredNodeIDs: unanswered }),
      },
    };
  },
});

/** `POST /admin/orphans/sandboxes/{sandboxID}/adopt` */
export const adoptSandboxRoute = route({
  operationId: 'adminAdoptSandbox',
  method: 'POST',
  path: '/admin/orphans/sandboxes/{sandboxID}/adopt',
  summary: 'Adopt an orphaned sandbox for a team, as a paused one',
  auth: 'admin',
  params: sandboxParams,
  body: SandboxAdoption,
  responses: { 204: { description: 'The team has it' } },
  errors: [404, 409],
  async handle(deps: AdoptDeps, { params, body, audit }) {
    audit({ target: `sandbox:${params.sandboxID}`, after: { teamId: body.teamID } });
    await adoptSandbox(deps, await teamForAdmin(deps.db, body.teamID), params.sandboxID);
    return { status: 204 };
  },
});

/** `DELETE /admin/orphans/sandboxes/{sandboxID}` */
export const discardSandboxRoute = route({
  operationId: 'adminDiscardSandbox',
  method: 'DELETE',
  path: '/admin/orphans/sandboxes/{sandboxID}',
  summary: 'Delete an orphaned sandbox with all its data',
  auth: 'admin',
  proof: true,
  params: sandboxParams,
  responses: { 204: { description: 'It is gone' } },
  errors: [404],
  async handle(deps: OrphanDeps, { params, audit }) {
    audit({ target: `sandbox:${params.sandboxID}` });
    await discardSandbox(deps, params.sandboxID);
    return { status: 204 };
  },
});

/** `POST /admin/orphans/volumes/{volumeID}/adopt/{teamID}` */
export const adoptVolumeRoute = route({
  operationId: 'adminAdoptVolume',
  method: 'POST',
  path: '/admin/orphans/volumes/{volumeID}/adopt/{teamID}',
  summary: 'Adopt an orphaned volume for a team',
  auth: 'admin',
  params: Type.Object({ volumeID: Type.String(), teamID: Type.String() }),
  body: NewVolume,
  responses: { 204: { description: 'The team has it, by this name' } },
  errors: [404, 409],
  async handle(deps: AdoptVolumeDeps, { params, body, audit }) {
    audit({ target: `volume:${params.volumeID}`, after: { teamId: params.teamID, name: body.name } });
    await adoptVolume(deps, await teamForAdmin(deps.db, params.teamID), params.volumeID, body.name);
    return { status: 204 };
  },
});

/** `DELETE /admin/orphans/volumes/{volumeID}` */
export const discardVolumeRoute = route({
  operationId: 'adminDiscardVolume',
  method: 'DELETE',
  path: '/admin/orphans/volumes/{volumeID}',
  summary: 'Delete an orphaned volume with its content',
  auth: 'admin',
  proof: true,
  params: volumeParams,
  responses: { 204: { description: 'It is gone' } },
  errors: [404, 409],
  async handle(deps: OrphanDeps, { params, audit }) {
    audit({ target: `volume:${params.volumeID}` });
    await discardVolume(deps, params.volumeID);
    return { status: 204 };
  },
});

/** `POST /admin/orphans/forget-unknown` */
export const forgetUnknownRoute = route({
  operationId: 'adminForgetUnknown',
  method: 'POST',
  path: '/admin/orphans/forget-unknown',
  summary: 'Allow the deletion of layers and memory that the database does not know, after an older one was accepted',
  auth: 'admin',
  proof: true,
  responses: { 204: { description: 'They are deleted soon' } },
  async handle({ db }: { db: Db }, { audit }) {
    audit({ target: 'installation:this' });
    await forgetUnknown(db);
    return { status: 204 };
  },
});
