import { randomBytes } from 'node:crypto';
import type { ClusterLinks, MemoryExchange } from '../../../protocol/cluster.ts';

const keyBytes = 32;

/** How a machine receives something: it is begun, written to the descriptor, and then kept or dropped. */
export type Taking<Kept> = {
  open(): Promise<{ writeId: string; descriptor: number }>;
  keep(writeId: string): Promise<Kept>;
  drop(writeId: string): Promise<void>;
};

/** A key for a single transfer to or from a machine. */
export const newCarryKey = (): string => randomBytes(keyBytes).toString('base64url');

/** Writes a stream to a machine, which drops an incomplete one. Errors: those of the stream and of the machine. */
export async function writeToMachine<Kept>(
  links: Pick<ClusterLinks, 'write'>,
  { open, keep, drop }: Taking<Kept>,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Kept> {
  const { writeId, descriptor } = await open();
  try {
    await links.write(descriptor, bytes);
  } catch (error) {
    await drop(writeId).catch(() => {}); // it expires by itself
    throw error;
  }
  return keep(writeId);
}

/**
 * Carries a stream from the machine that `openRead` asks to another one, which keeps it as `target`; the stream is
 * encrypted with a key for this transfer alone. `sizeBytes`: the room that it takes there. Errors: those of both
 * machines.
 */
export async function carryBetween<Target>(
  links: Pick<ClusterLinks, 'read' | 'write'>,
  openRead: (key: string) => Promise<{ descriptor: number }>,
  to: Pick<MemoryExchange<Target, unknown>, 'openWrite' | 'keepWrite' | 'dropWrite'>,
  target: Target,
  sizeBytes: number,
): Promise<void> {
  const key = newCarryKey();
  // Opened by the writer, which closes its own connection if this fails.
  async function* sent() {
    yield* links.read((await openRead(key)).descriptor);
  }
  const taking = {
    open: () => to.openWrite(target, key, sizeBytes),
    keep: (writeId: string) => to.keepWrite(writeId),
    drop: (writeId: string) => to.dropWrite(writeId),
  };
  await writeToMachine(links, taking, sent());
}
