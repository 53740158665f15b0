import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, int32, int64, mapOf } from './primitives.ts';

const bytes = (description: string) => int64({ minimum: 0, description });

/** Use of one sandbox at one moment. */
export const SandboxMetric = Type.Object(
  {
    timestamp: dateTime('The same as timestampUnix'),
    timestampUnix: int64({ minimum: 0, description: 'Seconds' }),
    cpuCount: int32({ minimum: 1 }),
    cpuUsedPct: Type.Number({ minimum: 0, maximum: 100, description: 'Over all CPUs of the sandbox' }),
    memUsed: bytes('Bytes, without memCache'),
    memTotal: bytes('Bytes'),
    memCache: bytes('Bytes of files that are kept in memory while there is room'),
    diskUsed: bytes('Bytes'),
    diskTotal: bytes('Bytes'),
  },
  { $id: 'SandboxMetric' },
);
export type SandboxMetric = Static<typeof SandboxMetric>;

/** Answer of GET /sandboxes/metrics. */
export const SandboxesMetrics = Type.Object(
  {
    sandboxes: mapOf(SandboxMetric, 'The latest metric of each sandbox that has one, by ID'),
    partial: Type.Optional(
      Type.Boolean({ description: 'The machine of some of them is out of reach now: those are left out' }),
    ),
  },
  { $id: 'SandboxesWithMetrics' },
);

/** Traffic of one sandbox since it was created or resumed (Atoll's own interface). */
export const SandboxTraffic = Type.Object(
  {
    bytesOut: bytes('What the sandbox has sent by itself'),
    bytesIn: bytes('What it has received'),
    denied: int64({ minimum: 0, description: 'Packets and connections that its network policy refused' }),
  },
  { $id: 'SandboxTraffic' },
);
export type SandboxTraffic = Static<typeof SandboxTraffic>;

/** Use of a team within one interval. */
export const TeamMetric = Type.Object(
  {
    timestamp: dateTime('The same as timestampUnix'),
    timestampUnix: int64({ minimum: 0, description: 'Seconds' }),
    concurrentSandboxes: int32({ minimum: 0, description: 'The most that ran at a time' }),
    sandboxStartRate: Type.Number({ minimum: 0, description: 'Sandboxes created a second' }),
    sandboxSeconds: int64({ minimum: 0, description: 'For how long sandboxes ran, counted once a minute' }),
  },
  { $id: 'TeamMetric' },
);
export type TeamMetric = Static<typeof TeamMetric>;

/** For how long sandboxes of one template ran for a team (Atoll's own interface). */
export const TemplateUse = Type.Object(
  {
    templateID: Type.String(),
    names: Type.Array(Type.String(), { description: 'Those that it has now; none where it is gone' }),
    sandboxSeconds: int64({ minimum: 0, description: 'Counted once a minute' }),
  },
  { $id: 'TemplateUse' },
);
export type TemplateUse = Static<typeof TemplateUse>;

/** Metrics of a team that have a maximum. */
export const teamMetricNames = ['concurrent_sandboxes', 'sandbox_start_rate'] as const;
/** A metric of a team whose maximum can be asked for. */
export type TeamMetricName = (typeof teamMetricNames)[number];

/** Answer of GET /teams/{teamID}/metrics/max. */
export const MaxTeamMetric = Type.Object(
  {
    timestamp: dateTime('The same as timestampUnix'),
    timestampUnix: int64({ minimum: 0, description: 'Seconds' }),
    value: Type.Number({ minimum: 0 }),
  },
  { $id: 'MaxTeamMetric' },
);
