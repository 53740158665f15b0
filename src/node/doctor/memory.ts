import { layoutOf } from '../layout.ts';
import { findCriu } from '../snapshot/criu.ts';
import { knownMemoryKeeping, memoryKeepingFile, type Later } from '../snapshot/memory-keeping.ts';
import { tryCommand } from '../../base/process/command.ts';
import { limited, missing, ok, type Probe, type ProbeResult } from './probe.ts';
import { messageOf } from '../../base/error.ts';

const remedy = 'Without it a pause keeps the files of a sandbox, not its memory. docs/pause.md says what it needs.';

/** Whether pauses, snapshots and forks can keep the memory of sandboxes. */
export function memoryProbe({ dataDir, criuDir }: { dataDir: string; criuDir: string }): Probe {
  return {
    name: 'memory of paused sandboxes',
    needed: false,
    look: () => look(criuDir, memoryKeepingFile(layoutOf(dataDir, '', 0).data)),
  };
}

const howOf = ({ notLater }: Later) =>
  notLater === null ? 'with memory that comes while it runs' : `with all memory at once: ${notLater}`;

async function look(criuDir: string, cacheFile: string): Promise<ProbeResult> {
  let criu;
  try {
    criu = findCriu(criuDir);
  } catch (error) {
    return missing(messageOf(error), remedy);
  }
  const name = `CRIU ${criu.version} (${criu.source})`;
  const known = knownMemoryKeeping(criu, cacheFile);
  if (known)
    return known.possible
      ? ok(`${name}; a sandbox was kept and brought back since the host started, ${howOf(known)}`)
      : limited(`${name}; ${known.reason}`, remedy);
  const said = await tryCommand(['env', ...criu.argv, 'check']);
  return /looks good/i.test(said)
    ? ok(`${name}; criu check passes, the next start tries it with a sandbox`)
    : limited(`${name}; ${said.split('\n')[0] ?? ''}`, remedy);
}
