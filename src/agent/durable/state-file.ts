import { readSync, writeSync } from 'node:fs';
import {
  exitsMax,
  exitsOffset,
  processesMax,
  processesOffset,
  processRecordBytesMax,
  settingsBytesMax,
  settingsHeadOffset,
  settingsOffsets,
  tokenBytesMax,
  tokenOffset,
} from './layout.ts';

/** The end of a process that was not the agent's child: the raw status of wait(2). */
export type OrphanEnd = { pid: number; status: number };

/**
 * The agent's memory beyond its own life, see `layout.ts`. Every call makes a few system calls on memory; none of them
 * waits.
 */
export type StateFile = {
  /** Proves to `/init` that a request comes from the platform. */
  readonly controlToken: string;
  /** Also applies to agents that are started later. */
  replaceControlToken(token: string): void;
  /** The settings that were saved last; undefined before the first. */
  readSettings(): unknown;
  /** Replaces the saved settings. If the agent is killed half-way, the earlier ones remain. */
  saveSettings(settings: unknown): void;
  /** Saves a process record and answers its slot, or -1 when it is too large or the table is full. */
  addProcess(record: unknown): number;
  removeProcess(slot: number): void;
  readProcesses(): { slot: number; record: unknown }[];
  /** The newest ends of processes that init reaped, oldest first. */
  orphanEnds(): OrphanEnd[];
};

/** Opens the state file: the memfd that init made and that outlives every agent of the sandbox. */
export function openStateFile(fd: number): StateFile {
  const free: number[] = [];
  let slotsUsed = 0;
  let controlToken = readToken(fd);
  const writeLength = (slot: number, length: number) =>
    writeSync(fd, new Uint32Array([length]), 0, 4, processesOffset + slot * processRecordBytesMax);

  return {
    get controlToken() {
      return controlToken;
    },
    replaceControlToken(token) {
      writeBytes(fd, new TextEncoder().encode(`${token}\n`), tokenOffset);
      controlToken = token;
    },
    readSettings() {
      const [, half = 0, length = 0] = new Uint32Array(readBytes(fd, settingsHeadOffset, 12).buffer);
      if (length === 0) return undefined;
      return JSON.parse(new TextDecoder().decode(readBytes(fd, settingsOffsets[half === 1 ? 1 : 0], length)));
    },
    saveSettings(settings) {
      const [sequence = 0, half = 0] = new Uint32Array(readBytes(fd, settingsHeadOffset, 12).buffer);
      const next = half === 1 ? 0 : 1;
      const bytes = new TextEncoder().encode(JSON.stringify(settings));
      if (bytes.length > settingsBytesMax)
        throw new RangeError(`the settings take ${bytes.length} bytes, more than ${settingsBytesMax}`);
      writeBytes(fd, bytes, settingsOffsets[next]);
      writeSync(fd, new Uint32Array([sequence + 1, next, bytes.length]), 0, 12, settingsHeadOffset);
    },
    addProcess(record) {
      const bytes = new TextEncoder().encode(JSON.stringify(record));
      if (bytes.length + 4 > processRecordBytesMax) return -1;
      const slot = free.pop() ?? (slotsUsed < processesMax ? slotsUsed++ : -1);
      if (slot < 0) return -1;
      writeBytes(fd, bytes, processesOffset + slot * processRecordBytesMax + 4);
      writeLength(slot, bytes.length);
      return slot;
    },
    removeProcess(slot) {
      if (slot < 0) return;
      writeLength(slot, 0);
      free.push(slot);
    },
    readProcesses() {
      const found: { slot: number; record: unknown }[] = [];
      free.length = 0;
      for (let slot = 0; slot < processesMax; slot++) {
        const offset = processesOffset + slot * processRecordBytesMax;
        const [length = 0] = new Uint32Array(readBytes(fd, offset, 4).buffer);
        if (length === 0) free.push(slot);
        else found.push({ slot, record: JSON.parse(new TextDecoder().decode(readBytes(fd, offset + 4, length))) });
      }
      // Low slots first: their memory has been used before.
      free.reverse();
      slotsUsed = processesMax;
      return found;
    },
    orphanEnds() {
      const words = new Uint32Array(readBytes(fd, exitsOffset, 4 + exitsMax * 8).buffer);
      const count = words[0] ?? 0;
      const ends: OrphanEnd[] = [];
      for (let index = Math.max(0, count - exitsMax); index < count; index++) {
        const at = 1 + (index % exitsMax) * 2;
        ends.push({ pid: words[at] ?? 0, status: (words[at + 1] ?? 0) | 0 });
      }
      return ends;
    },
  };
}

function readToken(fd: number): string {
  const [line = ''] = new TextDecoder().decode(readBytes(fd, tokenOffset, tokenBytesMax)).split('\n');
  return line;
}

function readBytes(fd: number, offset: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  readSync(fd, bytes, 0, length, offset);
  return bytes;
}

/** Writes everything or throws: if no memory is left for the file, the kernel may take only a part. */
function writeBytes(fd: number, bytes: Uint8Array, offset: number): void {
  const written = writeSync(fd, bytes, 0, bytes.length, offset);
  if (written < bytes.length) throw new Error(`the state file took ${written} of ${bytes.length} bytes`);
}
