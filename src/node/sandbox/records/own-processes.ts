import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AtollError, isGone } from '../../../base/error.ts';
import { readIfThere } from '../../../base/small-file.ts';
import type { Layout } from '../../layout.ts';
import type { ProcessPlace, SandboxRecord } from './record.ts';
import { isAlive } from './start-ticks.ts';

/**
 * Fails with `precondition` if the recorded processes belong to another installation of this machine: the data
 * directory was moved or copied while they ran. What is around them has that installation's names, and a copy that
 * ended them would end the original's.
 */
export function requireOwnProcesses(
  { installation, run, data }: Pick<Layout, 'installation' | 'run' | 'data'>,
  record: SandboxRecord,
  readGroups: (pid: number) => string = groupsOf,
): void {
  const place: ProcessPlace | null = record.state === 'running' ? record : record.frozen;
  if (!place || !isAlive(place)) return;
  const [, number] = /\/atoll(\d+)\/s\d+$/m.exec(readGroups(place.pid)) ?? [];
  if (number === undefined || Number(number) === installation) return;
  const owner = readIfThere(join(dirname(run), number, 'owner')) ?? 'another directory';
  throw new AtollError(
    'precondition',
    `Sandboxes that ${dirname(data)} tells of run as those of ${owner}: it was moved or copied while they ran. Put a ` +
      `moved one back and end them first (\`ATOLL_DATA_DIR=${owner} atoll down\`, which keeps what is paused); what ` +
      'makes a copy is `atoll backup`.',
  );
}

/** The control groups of a process, one per line; none if it has ended. */
function groupsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  } catch (error) {
    if (isGone(error)) return '';
    throw error;
  }
}
