import { expect, test } from 'bun:test';
import { processRestartsMetric } from '../../../base/telemetry/process-restarts.ts';
import type { NodeUsage } from '../../../protocol/node-usage.ts';
import { withRestarts } from './node-metrics.ts';

test('restarts on machines of a cluster are counted by machine, in addition to those beside the api', () => {
  const own = [{ labels: { process: 'api', reason: 'ended' }, value: 1 }];
  const restarts = { name: processRestartsMetric, help: 'h', kind: 'counter' as const, samples: own };
  const other = { name: 'other', help: 'h', kind: 'gauge' as const, samples: [] };
  const usage = { restarts: [{ process: 'node', reason: 'stalled', count: 3 }] } as NodeUsage;
  const reports = [
    { nodeId: 'n1', info: null, usage },
    { nodeId: 'away', info: null, usage: null },
    // A release that does not report it.
    { nodeId: 'n2', info: null, usage: {} as NodeUsage },
  ];
  expect(withRestarts([restarts, other], reports)).toEqual([
    { ...restarts, samples: [...own, { labels: { node: 'n1', process: 'node', reason: 'stalled' }, value: 3 }] },
    other,
  ]);
});
