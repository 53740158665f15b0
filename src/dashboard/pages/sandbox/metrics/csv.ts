import type { SandboxMetric } from '../../../../protocol/api/metrics.ts';
import { csvOf } from '../../../parts/csv.ts';

const columns = ['timestamp', 'cpuUsedPct', 'memUsed', 'memCache', 'memTotal', 'diskUsed', 'diskTotal'] as const;

/** Samples as a table of comma-separated values; sizes are bytes. */
export const metricsCsv = (samples: readonly SandboxMetric[]): string =>
  csvOf(
    columns,
    samples.map(sample => columns.map(name => sample[name])),
  );
