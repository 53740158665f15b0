/** A shell of this window: its sandbox, and its number among the shells there. */
export type ShellPlace = { sandboxId: string; number: number };

const keyOf = ({ sandboxId, number }: ShellPlace) => `atoll.shell.${sandboxId}.${number}`;

/**
 * The tag of the shell that this window had, if any. The sandbox's agent keeps what it has shown. A PID would not do:
 * it may be another process's by now, if the sandbox was restarted.
 */
export const keptShell = (place: ShellPlace): string | null => sessionStorage.getItem(keyOf(place));

/** A tag that no other shell has. */
export const newShellTag = (): string => `dashboard-${crypto.randomUUID()}`;

/** Saves a shell for when this window comes back. */
export const keepShell = (place: ShellPlace, tag: string): void => sessionStorage.setItem(keyOf(place), tag);

/** Forgets a shell that has ended; the next one in its place starts the same way. */
export const forgetEnded = (place: ShellPlace): void => sessionStorage.removeItem(keyOf(place));

/** Forgets a shell and how it started. */
export const forgetShell = (place: ShellPlace): void => {
  for (const key of [keyOf(place), startKey(place)]) sessionStorage.removeItem(key);
};

/** The user and the directory of a new shell; without a directory, the home. */
export type ShellStart = { user: string; cwd?: string };

const startKey = (place: ShellPlace) => `${keyOf(place)}.start`;
const usual: ShellStart = { user: 'user' };

/** How a shell of this window starts, also when it has to start again. */
export function shellStart(place: ShellPlace): ShellStart {
  const kept = JSON.parse(sessionStorage.getItem(startKey(place)) ?? 'null') as Partial<ShellStart> | null;
  if (typeof kept?.user !== 'string') return usual;
  return { user: kept.user, ...(typeof kept.cwd === 'string' && { cwd: kept.cwd }) };
}

/** Saves how a shell starts. */
export const keepShellStart = (place: ShellPlace, start: ShellStart): void =>
  sessionStorage.setItem(startKey(place), JSON.stringify(start));

const listKey = (sandboxId: string) => `atoll.shells.${sandboxId}`;

/** The numbers of the shells that this window has in a sandbox; at least one. */
export function shellNumbers(sandboxId: string): number[] {
  const kept: unknown = JSON.parse(sessionStorage.getItem(listKey(sandboxId)) ?? '[1]');
  return Array.isArray(kept) && kept.length > 0 && kept.every(Number.isSafeInteger) ? kept : [1];
}

/** Saves which shells this window has in a sandbox. */
export const keepShellNumbers = (sandboxId: string, numbers: readonly number[]): void =>
  sessionStorage.setItem(listKey(sandboxId), JSON.stringify(numbers));
