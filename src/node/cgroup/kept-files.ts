import { closeSync, openSync, readSync } from 'node:fs';
import { systemCodeOf } from '../../base/error.ts';

/** Longest text of a group's counter file; the longest is version 2's `cpu.stat`, half a kilobyte. */
const textBytesMax = 4096;

/**
 * Reads short files of the kernel that are read every second, and keeps them open in between: finding one by its path
 * costs more than reading it. The group can be removed meanwhile.
 */
export class KeptFiles {
  readonly #open = new Map<string, number>();
  readonly #buffer = Buffer.allocUnsafe(textBytesMax);

  /** Reads the text of a file. Throws if it is gone. */
  read(path: string): string {
    const fd = this.#open.get(path);
    if (fd === undefined) return this.#textOf(this.#reopen(path));
    try {
      return this.#textOf(fd);
    } catch (error) {
      // The path now belongs to a new group of the same name: the open file still belongs to the old one.
      if (systemCodeOf(error) !== 'ENODEV') throw error;
      this.forget(path);
      return this.#textOf(this.#reopen(path));
    }
  }

  /** Closes a file that will not be read again; one that was never read is fine. */
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
