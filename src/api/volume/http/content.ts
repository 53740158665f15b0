import { Type } from '@sinclair/typebox';
import {
  NewVolumeEntryQuery,
  VolumeEntryChange,
  VolumeEntryStat,
  VolumeListQuery,
  VolumePathQuery,
} from '../../../protocol/api/volume.ts';
import type { VolumeEntry } from '../../../protocol/volume.ts';
import { formatTime } from '../../../base/time.ts';
import { contentOf, newEntry, removePath, streamDescriptor, uploadFile } from '../rules/content.ts';
import type { VolumeUploads } from '../rules/uploads.ts';
import { type Charging, chargeRequests } from '../../credential/rules/rate-limit.ts';
import { route } from '../../http/route.ts';
import type { Nodes } from '../../placement/nodes.ts';

const params = Type.Object({ volumeID: Type.String() });
const stat = { description: 'What is there', schema: VolumeEntryStat };
// Changes of content are not in the audit log: that would be one entry for each file.
const changes = false;

/** `GET /volumecontent/{volumeID}/path` */
export const statVolumeEntry = route({
  operationId: 'getVolumePath',
  method: 'GET',
  path: '/volumecontent/{volumeID}/path',
  summary: 'Get the metadata of a path in a volume; a symlink is not followed',
  auth: 'volume',
  params,
  query: VolumePathQuery,
  responses: { 200: stat },
  errors: [404],
  async handle({ nodes }: { nodes: Nodes }, { caller, params, query }) {
    const { volume, content } = contentOf(nodes, caller, params.volumeID);
    return { status: 200, body: entryView(await content.stat(volume.volumeId, query.path)) };
  },
});

/** `PATCH /volumecontent/{volumeID}/path` */
export const changeVolumeEntry = route({
  operationId: 'updateVolumePath',
  method: 'PATCH',
  path: '/volumecontent/{volumeID}/path',
  summary: 'Change owner and permissions of a path; a symlink is followed inside the volume',
  auth: 'volume',
  changes,
  params,
  query: VolumePathQuery,
  body: VolumeEntryChange,
  responses: { 200: stat },
  errors: [404],
  async handle({ nodes }: { nodes: Nodes }, { caller, params, query, body }) {
    const { volume, content } = contentOf(nodes, caller, params.volumeID);
    return { status: 200, body: entryView(await content.changeEntry(volume.volumeId, query.path, body)) };
  },
});

/** `DELETE /volumecontent/{volumeID}/path` */
export const removeVolumeEntry = route({
  operationId: 'deleteVolumePath',
  method: 'DELETE',
  path: '/volumecontent/{volumeID}/path',
  summary: 'Delete a path with everything below it',
  auth: 'volume',
  changes,
  params,
  query: VolumePathQuery,
  responses: { 204: { description: 'It is gone' } },
  errors: [404],
  async handle({ nodes }: { nodes: Nodes }, { caller, params, query }) {
    const { volume, content } = contentOf(nodes, caller, params.volumeID);
    await removePath(content, volume, query.path);
    return { status: 204 };
  },
});

/** Entries of a directory that count as one more request: reading and answering them takes as long as one. */
const entriesPerRequest = 50;

/** `GET /volumecontent/{volumeID}/dir` */
export const listVolumeDirectory = route({
  operationId: 'listVolumeDirectory',
  method: 'GET',
  path: '/volumecontent/{volumeID}/dir',
  summary: 'List a directory, each directory followed by its children, by name',
  auth: 'volume',
  params,
  query: VolumeListQuery,
  responses: { 200: { description: 'The entries', schema: Type.Array(VolumeEntryStat) } },
  errors: [404],
  async handle(deps: { nodes: Nodes } & Charging, { caller, params, query }) {
    const { volume, content } = contentOf(deps.nodes, caller, params.volumeID);
    const entries = await content.listDirectory(volume.volumeId, query.path, query.depth ?? 1);
    chargeRequests(deps, caller, Math.floor(entries.length / entriesPerRequest));
    return { status: 200, body: entries.map(entryView) };
  },
});

/** `POST /volumecontent/{volumeID}/dir` */
export const makeVolumeDirectory = route({
  operationId: 'createVolumeDirectory',
  method: 'POST',
  path: '/volumecontent/{volumeID}/dir',
  summary: 'Create a directory',
  auth: 'volume',
  changes,
  params,
  query: NewVolumeEntryQuery,
  responses: { 201: stat },
  errors: [404, 409, 507],
  async handle({ nodes }: { nodes: Nodes }, { caller, params, query }) {
    const { volume, content } = contentOf(nodes, caller, params.volumeID);
    return {
      status: 201,
      body: entryView(await content.makeDirectory(volume.volumeId, query.path, newEntry('directory', query))),
    };
  },
});

/** `GET /volumecontent/{volumeID}/file` */
export const readVolumeFile = route({
  operationId: 'getVolumeFile',
  method: 'GET',
  path: '/volumecontent/{volumeID}/file',
  summary: 'Read a file',
  auth: 'volume',
  params,
  query: VolumePathQuery,
  responses: { 200: { description: 'The content', binary: true } },
  errors: [404],
  async handle({ nodes }: { nodes: Nodes }, { caller, params, query, signal }) {
    const { volume, content, carried } = contentOf(nodes, caller, params.volumeID);
    const { sizeBytes, descriptor } = await content.openRead(volume.volumeId, query.path);
    return { status: 200, stream: streamDescriptor(descriptor, sizeBytes, signal, carried) };
  },
});

/** `PUT /volumecontent/{volumeID}/file` */
export const writeVolumeFile = route({
  operationId: 'putVolumeFile',
  method: 'PUT',
  path: '/volumecontent/{volumeID}/file',
  summary: 'Write a file from the body; it appears whole or not at all',
  auth: 'volume',
  changes,
  params,
  upload: true,
  query: NewVolumeEntryQuery,
  responses: { 201: stat },
  errors: [404, 409, 507],
  async handle(
    { nodes, volumeUploads }: { nodes: Nodes; volumeUploads: VolumeUploads },
    { caller, params, query, upload, signal },
  ) {
    const { volume, ...at } = contentOf(nodes, caller, params.volumeID);
    const { volumeId, nodeId, teamId } = volume;
    using _place = await volumeUploads.begin(nodeId, teamId, signal);
    const body = { ...upload, signal };
    const entry = await uploadFile(at, volumeId, query.path, newEntry('file', query), body, work =>
      volumeUploads.keep(nodeId, teamId, work),
    );
    return { status: 201, body: entryView(entry) };
  },
});

function entryView(entry: VolumeEntry): VolumeEntryStat {
  const { name, type, path, sizeBytes, mode, uid, gid, target } = entry;
  const time = (ms: number) => formatTime(Math.floor(ms * 1000));
  const times = { atime: time(entry.accessedAtMs), mtime: time(entry.modifiedAtMs), ctime: time(entry.changedAtMs) };
  return { name, type, path, size: sizeBytes, mode, uid, gid, ...times, ...(target !== undefined && { target }) };
}
