import type { SandboxMetric } from '../../../../protocol/api/metrics.ts';

const columns = ['timestamp', 'cpuUsedPct', 'memUsed', 'memCache', 'memTotal', 'diskUsed', 'diskTotal'] as const;

/** Samples as a table of comma-separated values (RFC 4180); sizes are bytes. */
export const csvOf = (samples: readonly SandboxMetric[]): string =>
  [columns.join(','), ...samples.map(sample => columns.map(name => sample[name]).join(','))]
    .map(line => `${line}\r\n`)
    .join('');
