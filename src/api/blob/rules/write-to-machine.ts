import { randomBytes } from 'node:crypto';
import type { ClusterLinks, MemoryExchange } from '../../../protocol/cluster.ts';

const keyBytes = 32;

/** How a machine takes something: it is begun, written to the descriptor, and then kept or dropped. */
export type Taking<Kept> = {
  open(): Promise<{ writeId: string; descriptor: number }>;
  keep(writeId: string): Promise<Kept>;
  drop(writeId: string): Promise<void>;
};

/** A key for something that goes to or from a machine, for this once. */
export const newCarryKey = (): string => randomBytes(keyBytes).toString('base64url');

/** Has a machine take a stream; what has not come whole is dropped. Errors: those of the stream and of the machine. */
export async function writeToMachine<Kept>(
  links: Pick<ClusterLinks, 'write'>,
  { open, keep, drop }: Taking<Kept>,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Kept> {
  const { writeId, descriptor } = await open();
  try {
    await links.write(descriptor, bytes);
  } catch (error) {
    await drop(writeId).catch(() => {}); // it runs out
    throw error;
  }
  return keep(writeId);
}

/**
 * Carries a stream from the machine that `openRead` asks to another one, which keeps it as `target`, encrypted with a
 * key for this once. `sizeBytes`: what it takes there. Errors: those of both machines.
 */
export async function carryBetween<Target>(
  links: Pick<ClusterLinks, 'read' | 'write'>,
  openRead: (key: string) => Promise<{ descriptor: number }>,
  to: Pick<MemoryExchange<Target, unknown>, 'openWrite' | 'keepWrite' | 'dropWrite'>,
  target: Target,
  sizeBytes: number,
): Promise<void> {
  const key = newCarryKey();
  // Opened by who writes, which closes its own connection where this fails.
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
