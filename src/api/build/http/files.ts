import { Type } from '@sinclair/typebox';
import { int64 } from '../../../protocol/api/primitives.ts';
import { FileUpload } from '../../../protocol/api/template-build.ts';
import { offerUpload, takeUpload } from '../rules/files.ts';
import { route } from '../../http/route.ts';
import type { UploadDeps } from '../rules/files.ts';
import type { OfferDeps } from '../rules/files.ts';

/** `GET /templates/{templateID}/files/{hash}` */
export const offerFileUpload = route({
  operationId: 'getTemplateFileUpload',
  method: 'GET',
  path: '/templates/{templateID}/files/{hash}',
  summary: 'Get the upload URL for the files of a COPY, and whether they are there already',
  auth: 'teamOrUser',
  role: 'developer',
  params: Type.Object({ templateID: Type.String(), hash: Type.String() }),
  responses: { 201: { description: 'The upload', schema: FileUpload } },
  errors: [404],
  async handle(deps: OfferDeps, { caller, params, origin }) {
    const { present, path } = await offerUpload(deps, caller.team, params.templateID, params.hash);
    return { status: 201, body: { present, url: `${origin}${path}` } };
  },
});

/** `PUT /template-files/{teamID}/{hash}` */
export const putTemplateFiles = route({
  operationId: 'putTemplateFiles',
  method: 'PUT',
  path: '/template-files/{teamID}/{hash}',
  summary: 'Upload an archive (tar, plain or gzip) to a URL that the platform gave',
  auth: 'none',
  params: Type.Object({
    teamID: Type.String({ pattern: '^[0-9a-f-]{36}$' }),
    hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  }),
  upload: true,
  query: Type.Object({ expires: int64({ minimum: 0 }), signature: Type.String() }),
  responses: { 201: { description: 'The archive is here' } },
  errors: [401, 413, 429, 507],
  async handle(deps: UploadDeps, { params, query, upload, signal, audit }) {
    audit({ target: `files:${params.teamID}/${params.hash}` });
    await takeUpload(
      deps,
      { teamId: params.teamID, hash: params.hash, expires: query.expires, signature: query.signature },
      upload,
      signal,
    );
    return { status: 201 };
  },
});
