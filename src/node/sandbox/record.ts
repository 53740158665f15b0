import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { SandboxNetwork, SandboxResources } from '../../protocol/node.ts';

/** What a node must know about a running sandbox after it was restarted itself. */
export type SandboxRecord = {
  sandboxId: string;
  executionId: string;
  slot: number;
  pid: number;
  /** When the process `pid` started, in clock ticks since boot: a number that was used again is another process. */
  startTicks: number;
  /** Lets the platform give the agent new settings. The file is readable by root alone. */
  controlToken: string;
  startedAtMs: number;
  resources: SandboxResources;
  network: SandboxNetwork;
  /** What its root is made from: these layers are not collected. */
  layers: string[];
};

/** The sandboxes that the node answers for, one directory each: the record, and the disk beside it. */
export type Records = {
  directoryOf(sandboxId: string): string;
  diskOf(sandboxId: string): string;
  /** From here on the sandbox is adopted after a restart. */
  write(record: SandboxRecord): Promise<void>;
  /** From here on a restart removes what is left of the sandbox. */
  forget(sandboxId: string): void;
  /** Removes the sandbox's files. */
  remove(sandboxId: string): void;
  /** Every sandbox with files here; those without a record are leftovers. */
  list(): { sandboxId: string; record: SandboxRecord | undefined }[];
};

export function createRecords(dir: string): Records {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const directoryOf = (sandboxId: string) => join(dir, sandboxId);
  const recordOf = (sandboxId: string) => join(directoryOf(sandboxId), 'record.json');
  return {
    directoryOf,
    diskOf: sandboxId => join(directoryOf(sandboxId), 'disk.img'),
    async write(record) {
      const path = recordOf(record.sandboxId);
      // A process that is killed leaves either no record or a whole one. A host that loses power has no sandboxes to adopt.
      const file = await open(`${path}.new`, 'w', 0o600);
      await file.writeFile(JSON.stringify(record)).finally(() => file.close());
      renameSync(`${path}.new`, path);
    },
    forget: sandboxId => rmSync(recordOf(sandboxId), { force: true }),
    remove: sandboxId => rmSync(directoryOf(sandboxId), { recursive: true, force: true }),
    list: () => readdirSync(dir).map(sandboxId => ({ sandboxId, record: read(recordOf(sandboxId)) })),
  };
}

function read(path: string): SandboxRecord | undefined {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as SandboxRecord) : undefined;
}

/** When a process started, in clock ticks since boot; undefined when there is none. Source: proc(5), stat field 22. */
export function startTicksOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // One that only waits to be reaped has ended: its namespaces are gone.
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : Number(fields[19]);
  } catch {
    return undefined;
  }
}
