import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, int64, nullable, oneOf } from './primitives.ts';

const bytes = () => int64({ minimum: 0, description: 'Bytes' });
const seconds = (description: string) => nullable(Type.Number({ minimum: 0, description }));
const disk = { mountPoint: Type.String(), usedBytes: bytes(), totalBytes: bytes() };

/** Use of a node at one moment. */
export const NodeMetric = Type.Object(
  {
    timestamp: dateTime('The same as timestampUnix'),
    timestampUnix: int64({ minimum: 0, description: 'Seconds' }),
    cpuPercent: Type.Number({ minimum: 0, maximum: 100, description: 'Over all CPUs' }),
    memoryUsedBytes: bytes(),
    memoryTotalBytes: bytes(),
    disks: Type.Array(Type.Object(disk)),
  },
  { $id: 'NodeMetric' },
);
export type NodeMetric = Static<typeof NodeMetric>;

/** Answer of GET /admin/overview: what the answering control process has seen since it started. */
export const InstallationOverview = Type.Object(
  {
    since: dateTime('When the process that answers started; it knows nothing from before'),
    creates: Type.Object(
      {
        succeeded: int64({ minimum: 0 }),
        failed: int64({ minimum: 0, description: "Through no fault of the caller's" }),
        p50Seconds: seconds('Half of those that succeeded took no longer'),
        p99Seconds: seconds('99 of 100 took no longer'),
        causes: Type.Array(
          Type.Object({
            cause: Type.String({ description: '`error_code`, or the code' }),
            count: int64({ minimum: 1 }),
          }),
          { description: 'Why those that failed did, the most frequent first' },
        ),
      },
      { description: 'Creates and forks of sandboxes in the last hour' },
    ),
    reconcilers: Type.Array(
      Type.Object({
        name: Type.String(),
        lastRunAt: dateTime(),
        lastResult: oneOf(['ok', 'failed']),
        runs: int64({ minimum: 0 }),
        failures: int64({ minimum: 0 }),
        lastFailedAt: nullable(dateTime()),
      }),
      { description: 'What keeps the standing truths: its last round' },
    ),
    disks: Type.Array(
      Type.Object({
        nodeID: Type.String(),
        ...disk,
        fullAt: nullable(
          dateTime(
            'When it is full if it goes on as in the last day; null: it does not grow, or not long enough known',
          ),
        ),
      }),
    ),
  },
  { $id: 'InstallationOverview' },
);
export type InstallationOverview = Static<typeof InstallationOverview>;
