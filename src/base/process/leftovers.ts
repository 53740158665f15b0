import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The name of what this process makes for itself in a folder. It lets another process see when the maker is gone. */
export const ownName = (kind: string): string => `${kind}-${process.pid}`;

/** The process that made something under such a name; undefined for other names. */
export function makerOf(kind: string, name: string): number | undefined {
  const rest = name.startsWith(`${kind}-`) ? name.slice(kind.length + 1) : '';
  const [, pid] = /^(\d+)(?:-|$)/.exec(rest) ?? [];
  return pid === undefined ? undefined : Number(pid);
}

/** Removes what processes made in a folder and could not remove because they were killed. */
export function removeLeftovers(folder: string, kind: string): void {
  for (const name of readdirSync(folder)) {
    const pid = makerOf(kind, name);
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(folder, name), { recursive: true, force: true });
  }
}
