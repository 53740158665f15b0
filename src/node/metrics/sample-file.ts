import {
  closeSync,
  constants,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { ifThere } from '../../base/if-there.ts';
import type { SandboxSample } from '../../protocol/node-usage.ts';

/**
 * A sample on disk, little-endian: seconds u32, CPUs u16, hundredths of a percent u16, then used, total and cached
 * memory, used and total disk in KiB, u32 each, and four bytes that are 0. A record of zeros does not count: a crash
 * of the host left it.
 */
const recordBytes = 32;
const bytesPerKiB = 1024;
const endRecords = 64;
const kibMax = 0xffff_ffff;

/**
 * The samples of one sandbox: appended to `path`, which becomes `path.old` when it holds `recordsMax`. So at least the
 * last `recordsMax` are kept, and at most twice as many. The file is not kept open between two samples.
 */
export type SampleFile = {
  /** Errors: those of the file system. */
  append(sample: SandboxSample): void;
};

/** Opens the file of a sandbox's samples, which keeps at least the last `recordsMax`. It is made if it is missing. */
export function openSampleFile(path: string, recordsMax: number): SampleFile {
  // A record that a crash has left incomplete is overwritten.
  let records = Math.floor(sizeOf(path) / recordBytes);
  const buffer = Buffer.alloc(recordBytes);
  return {
    append(sample) {
      if (records >= recordsMax) {
        renameSync(path, oldOf(path));
        records = 0;
      }
      encode(buffer, sample);
      const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
      try {
        writeSync(fd, buffer, 0, recordBytes, records * recordBytes);
      } finally {
        closeSync(fd);
      }
      records++;
    },
  };
}

/** A range of time, Unix seconds, both ends included. */
type Range = { startSeconds: number; endSeconds: number };
const always: Range = { startSeconds: 0, endSeconds: Number.POSITIVE_INFINITY };

/** Every sample of a range that is kept at `path`, as they were written; none if there is no file. */
export function readSamples(path: string, range = always): SandboxSample[] {
  return [oldOf(path), path].flatMap(part =>
    decodeAll(
      ifThere(() => readFileSync(part), Buffer.alloc(0)),
      range,
    ),
  );
}

/**
 * The last sample at `path`, or undefined. Reads only the end of the file: callers ask for a hundred of them at a
 * time.
 */
export function readLastSample(path: string): SandboxSample | undefined {
  return decodeAll(readEnd(path)).at(-1) ?? decodeAll(readEnd(oldOf(path))).at(-1);
}

/** Removes the samples of a sandbox. */
export function removeSamples(path: string): void {
  for (const part of [path, oldOf(path)]) rmSync(part, { force: true });
}

/** The name of the sandbox whose samples a file holds. */
export function sandboxOfFile(name: string): string {
  return name.endsWith(oldEnding) ? name.slice(0, -oldEnding.length) : name;
}

const oldEnding = '.old';
const oldOf = (path: string) => `${path}${oldEnding}`;

function encode(buffer: Buffer, sample: SandboxSample): void {
  const kib = (bytes: number) => Math.min(Math.round(bytes / bytesPerKiB), kibMax);
  buffer.writeUInt32LE(sample.atSeconds, 0);
  buffer.writeUInt16LE(sample.cpuCount, 4);
  buffer.writeUInt16LE(Math.round(sample.cpuUsedPct * 100), 6);
  buffer.writeUInt32LE(kib(sample.memUsed), 8);
  buffer.writeUInt32LE(kib(sample.memTotal), 12);
  buffer.writeUInt32LE(kib(sample.memCache), 16);
  buffer.writeUInt32LE(kib(sample.diskUsed), 20);
  buffer.writeUInt32LE(kib(sample.diskTotal), 24);
}

/** A day has 17,280 samples, and callers mostly ask for the last few: only those become objects. */
function decodeAll(bytes: Buffer, { startSeconds, endSeconds } = always): SandboxSample[] {
  const samples: SandboxSample[] = [];
  for (let at = 0; at + recordBytes <= bytes.length; at += recordBytes) {
    const atSeconds = bytes.readUInt32LE(at);
    if (atSeconds > 0 && atSeconds >= startSeconds && atSeconds <= endSeconds)
      samples.push(decode(bytes, at, atSeconds));
  }
  return samples;
}

function decode(bytes: Buffer, at: number, atSeconds: number): SandboxSample {
  return {
    atSeconds,
    cpuCount: bytes.readUInt16LE(at + 4),
    cpuUsedPct: bytes.readUInt16LE(at + 6) / 100,
    memUsed: bytes.readUInt32LE(at + 8) * bytesPerKiB,
    memTotal: bytes.readUInt32LE(at + 12) * bytesPerKiB,
    memCache: bytes.readUInt32LE(at + 16) * bytesPerKiB,
    diskUsed: bytes.readUInt32LE(at + 20) * bytesPerKiB,
    diskTotal: bytes.readUInt32LE(at + 24) * bytesPerKiB,
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Reads the last few records, in case the very last ones are empty. */
function readEnd(path: string): Buffer {
  const records = Math.floor(sizeOf(path) / recordBytes);
  const first = Math.max(records - endRecords, 0);
  if (records === 0) return Buffer.alloc(0);
  const buffer = Buffer.alloc((records - first) * recordBytes);
  const fd = openSync(path, constants.O_RDONLY);
  try {
    return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, first * recordBytes));
  } finally {
    closeSync(fd);
  }
}
