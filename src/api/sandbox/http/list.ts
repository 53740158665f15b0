import { Type } from '@sinclair/typebox';
import { int32, oneOf } from '../../../protocol/api/primitives.ts';
import { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { listPage, listPageMax, listRunning } from '../rules/list.ts';
import { route } from '../../http/route.ts';
import { listedSandboxView } from './view.ts';
import type { Db } from '../../database/db.ts';

const metadata = Type.Optional(
  Type.String({ description: 'key=value pairs joined by "&", each key and value URL-encoded; all must match' }),
);

/** The longest text that is looked for. */
const textCharactersMax = 100;

/** `GET /sandboxes` */
export const listSandboxesV1 = route({
  operationId: 'listSandboxes',
  method: 'GET',
  path: '/sandboxes',
  summary: 'List running sandboxes, newest first',
  deprecated: true,
  auth: 'team',
  long: true,
  query: Type.Object({ metadata }),
  responses: { 200: { description: 'The sandboxes', schema: Type.Array(ListedSandbox) } },
  async handle({ db }: { db: Db }, { caller, query }) {
    const sandboxes = await listRunning(db, caller.team, query.metadata);
    return { status: 200, body: sandboxes.map(listedSandboxView) };
  },
});

/** `GET /v2/sandboxes` */
export const listSandboxesV2 = route({
  operationId: 'listSandboxesV2',
  method: 'GET',
  path: '/v2/sandboxes',
  summary: 'List sandboxes, page by page',
  auth: 'team',
  long: true,
  query: Type.Object({
    metadata,
    state: Type.Optional(Type.Array(oneOf(['running', 'paused']))),
    order: Type.Optional(oneOf(['asc', 'desc'])),
    startedAfter: Type.Optional(Type.String({ description: 'RFC 3339, inclusive' })),
    template: Type.Optional(Type.String({ description: 'Template ID or name, without tag' })),
    nodeID: Type.Optional(Type.String({ description: 'The node that runs or keeps them' })),
    text: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: textCharactersMax,
        description: 'The beginning of the ID, or a part of a key or value of metadata of up to 4 KiB, in any case',
      }),
    ),
    nextToken: Type.Optional(Type.String()),
    limit: Type.Optional(int32({ minimum: 1, maximum: listPageMax, default: listPageMax })),
  }),
  responses: {
    200: {
      description: 'A page of sandboxes, fewer than `limit` where their metadata takes more than 4 MiB',
      schema: Type.Array(ListedSandbox),
      headers: {
        'X-Next-Token': 'Token of the next page, when there is one',
        'X-Total-Running': 'Matching running sandboxes on all pages, when running ones were asked for',
      },
    },
  },
  async handle({ db }: { db: Db }, { caller, query: { nodeID, ...filter }, othersHad }) {
    const asked = { ...filter, ...(nodeID !== undefined && { nodeId: nodeID }) };
    const { sandboxes, nextToken, totalRunning } = await listPage(db, caller.team, asked, othersHad);
    return {
      status: 200,
      body: sandboxes.map(listedSandboxView),
      headers: {
        ...(nextToken !== null && { 'X-Next-Token': nextToken }),
        ...(totalRunning !== null && { 'X-Total-Running': String(totalRunning) }),
      },
    };
  },
});
