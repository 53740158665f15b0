import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { csvOf } from '../../parts/csv.ts';

const columns = ['sandboxID', 'state', 'templateID', 'alias', 'nodeID', 'startedAt', 'endAt', 'cpuCount'] as const;

/** Sandboxes as a table of comma-separated values. */
export const sandboxesCsv = (rows: readonly ListedSandbox[]): string =>
  csvOf(
    [...columns, 'memoryMiB', 'diskMiB', 'metadata'],
    rows.map(row => [
      ...columns.map(name => row[name]),
      row.memoryMB,
      row.diskSizeMB,
      row.metadata && JSON.stringify(row.metadata),
    ]),
  );
