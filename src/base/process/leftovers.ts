import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The name of what this process makes for itself in a folder: another process can tell when its maker is gone. */
export const ownName = (kind: string): string => `${kind}-${process.pid}`;

/** The process that has made something under such a name; undefined for other names. */
export function makerOf(kind: string, name: string): number | undefined {
  const rest = name.startsWith(`${kind}-`) ? name.slice(kind.length + 1) : '';
  const [, pid] = /^(\d+)(?:-|$)/.exec(rest) ?? [];
  return pid === undefined ? undefined : Number(pid);
}

/** Removes from a folder what processes have made there that were killed before they had removed it themselves. */
export function removeLeftovers(folder: string, kind: string): void {
  for (const name of readdirSync(folder)) {
    const pid = makerOf(kind, name);
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(folder, name), { recursive: true, force: true });
  }
}
