import { closeSync, openSync, readSync } from 'node:fs';
import { systemCodeOf } from '../../base/error.ts';

/** Longest text of a group's count; the longest is version 2's `cpu.stat`, half a kilobyte. */
const textBytesMax = 4096;

/**
 * Reads short files of the kernel that are asked every second, and keeps them open in between: to look one up by its
 * path costs more than to read it. The group can be removed meanwhile.
 */
export class KeptFiles {
  readonly #open = new Map<string, number>();
  readonly #buffer = Buffer.allocUnsafe(textBytesMax);

  /** The text of a file. Throws where it is gone. */
  read(path: string): string {
    const fd = this.#open.get(path);
    if (fd === undefined) return this.#textOf(this.#reopen(path));
    try {
      return this.#textOf(fd);
    } catch (error) {
      // Another group has the name of the one that was: what was opened stays that one's.
      if (systemCodeOf(error) !== 'ENODEV') throw error;
      this.forget(path);
      return this.#textOf(this.#reopen(path));
    }
  }

  /** Closes a file that will not be asked for again; one that was never read is fine. */
  forget(path: string): void {
    const fd = this.#open.get(path);
    if (fd === undefined) return;
    this.#open.delete(path);
    closeSync(fd);
  }

  #reopen(path: string): number {
    const fd = openSync(path, 'r');
    this.#open.set(path, fd);
    return fd;
  }

  #textOf(fd: number): string {
    return this.#buffer.toString('latin1', 0, readSync(fd, this.#buffer, 0, textBytesMax, 0));
  }
}
