/** What is kept of a shell's output, to be shown again when one comes back. */
export const outputBytesMax = 256 * 1024;

/** The last bytes of an output. */
export class OutputMemory {
  #parts: Uint8Array[] = [];
  #bytes = 0;

  push(part: Uint8Array): void {
    this.#parts.push(part);
    this.#bytes += part.length;
    while (this.#parts.length > 1 && this.#bytes - (this.#parts[0]?.length ?? 0) >= outputBytesMax)
      this.#bytes -= this.#parts.shift()?.length ?? 0;
  }

  all(): Uint8Array[] {
    return [...this.#parts];
  }
}

/** A shell of this window: the sandbox that it is in, and its number among the shells there. */
type ShellPlace = { sandboxId: string; number: number };

const keyOf = ({ sandboxId, number }: ShellPlace) => `atoll.shell.${sandboxId}.${number}`;

/** The shell that this window had, if any: its process and what it had shown. */
export function keptShell(place: ShellPlace): { pid: number | null; output: OutputMemory } {
  const output = new OutputMemory();
  const kept = sessionStorage.getItem(keyOf(place));
  if (kept === null) return { pid: null, output };
  const { pid, text } = JSON.parse(kept) as { pid: number; text: string };
  output.push(Uint8Array.from(atob(text), char => char.charCodeAt(0)));
  return { pid, output };
}

/** Keeps a shell for when this window comes back. */
export function keepOutput(place: ShellPlace, pid: number | null, output: OutputMemory): void {
  if (pid === null) return;
  const text = output
    .all()
    .map(part => Array.from(part, byte => String.fromCharCode(byte)).join(''))
    .join('');
  sessionStorage.setItem(keyOf(place), JSON.stringify({ pid, text: btoa(text.slice(-outputBytesMax)) }));
}

/** Forgets a shell. */
export const forgetShell = (place: ShellPlace): void => sessionStorage.removeItem(keyOf(place));

const listKey = (sandboxId: string) => `atoll.shells.${sandboxId}`;

/** The numbers of the shells that this window has in a sandbox; at least one. */
export function shellNumbers(sandboxId: string): number[] {
  const kept: unknown = JSON.parse(sessionStorage.getItem(listKey(sandboxId)) ?? '[1]');
  return Array.isArray(kept) && kept.length > 0 && kept.every(Number.isSafeInteger) ? kept : [1];
}

/** Keeps which shells this window has in a sandbox. */
export const keepShellNumbers = (sandboxId: string, numbers: readonly number[]): void =>
  sessionStorage.setItem(listKey(sandboxId), JSON.stringify(numbers));
