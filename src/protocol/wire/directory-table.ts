import { Type } from '@sinclair/typebox';
import type { NodeWay } from '../cluster.ts';
import type { DirectoryProtocol, EdgeStats, Route, RoutesPage, RoutesCursor } from '../directory.ts';
import { method, type MethodTable } from './method.ts';
import { count, nothing, oneOf, schemaOf } from './schema.ts';

/** Longer than a poll is asked to wait, and than a resume from the disk takes. Milliseconds. */
const waitMs = 120_000;
const edge = { callers: ['edge'] } as const;
const textOrNull = () => Type.Union([Type.String(), Type.Null()]);

const Way = schemaOf<Route>()(
  Type.Object({
    sandboxId: Type.String(),
    teamId: Type.String(),
    executionId: Type.String(),
    nodeId: Type.String(),
    state: oneOf('running', 'moving', 'pausing', 'paused'),
    ingress: Type.Object({
      trafficAccessToken: textOrNull(),
      accessToken: textOrNull(),
      maskRequestHost: textOrNull(),
      httpsPorts: Type.Array(Type.Integer()),
      autoResume: Type.Boolean(),
    }),
  }),
);
const Cursor = schemaOf<RoutesCursor>()(Type.Object({ epoch: Type.String(), number: count() }));
const Page = schemaOf<RoutesPage>()(
  Type.Object({
    all: Type.Union([Type.Array(Way), Type.Null()]),
    changes: Type.Array(
      Type.Union([
        Type.Object({ kind: Type.Literal('running'), route: Way }),
        Type.Object({
          kind: Type.Literal('closed'),
          closed: Type.Object({ sandboxId: Type.String(), executionId: Type.String() }),
        }),
      ]),
    ),
    next: Cursor,
  }),
);
const NodeWaySchema = schemaOf<NodeWay>()(
  Type.Object({
    place: Type.Object({
      nodeId: Type.String(),
      host: Type.String(),
      port: Type.Integer(),
      certificates: Type.Array(Type.String()),
    }),
    identity: Type.Object({ certificate: Type.String(), key: Type.String(), authority: Type.String() }),
  }),
);
const Stats = schemaOf<EdgeStats>()(
  Type.Object({
    clientConnections: count(),
    clientConnectionsMax: count(),
    evictedClients: count(),
    refusedClients: count(),
    inSandboxes: count(),
    upstreamConnections: count(),
  }),
);

/** The methods of the api for the edge. */
export const directoryTable = {
  changes: method([Type.Union([Cursor, Type.Null()]), count()], Page, { ...edge, deadlineMs: waitMs }),
  find: method([Type.String()], Type.Union([Way, Type.Null()]), edge),
  wake: method([Type.String()], Way, { ...edge, deadlineMs: waitMs }),
  way: method([Type.String()], NodeWaySchema, edge),
  report: method([Stats], nothing(), edge),
} satisfies MethodTable<DirectoryProtocol>;
