import type { BuilderJob } from '../../protocol/builder.ts';

/** What one job may take. A job that takes more is ended, and with it the build that asked. */
type JobBounds = {
  memoryMiB: number;
  cpuSeconds: number;
  timeoutMs: number;
  /** Bytes of everything that a builder sends, its answer included. */
  saidBytesMax: number;
};

/** Reading and writing a layer of the largest size. */
const layer: JobBounds = { memoryMiB: 2_048, cpuSeconds: 1_200, timeoutMs: 20 * 60_000, saidBytesMax: 64 << 10 };
/** A short look at layers. */
const look: JobBounds = { memoryMiB: 512, cpuSeconds: 10, timeoutMs: 30_000, saidBytesMax: 64 << 10 };
/** Reading a Dockerfile of the longest kind. */
const dockerfile: JobBounds = { ...look, saidBytesMax: 8 << 20 };
/** A job that waits for others; the configuration of an image may be as long as a builder reads it. */
const transfer: JobBounds = { memoryMiB: 512, cpuSeconds: 600, timeoutMs: 60 * 60_000, saidBytesMax: 8 << 20 };
/** An image in a file of this machine. */
const file: JobBounds = { ...layer, saidBytesMax: 8 << 20 };

/** The bounds of a job, by its kind. */
export function boundsOf({ kind }: BuilderJob): JobBounds {
  switch (kind) {
    case 'look':
      return look;
    case 'dockerfile':
    case 'dev-container':
      return dockerfile;
    case 'registry-image':
    case 'registry-blob':
      return transfer;
    case 'file-image':
    case 'file-blob':
      return file;
    default:
      return layer;
  }
}
