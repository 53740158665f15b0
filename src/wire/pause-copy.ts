import { AtollError } from '../base/error.ts';
import { newUuid } from '../base/id.ts';
import type {
  Arrival,
  DraftCarrier,
  DraftExchange,
  MemoryCarrier,
  MemoryExchange,
  VolumeCarrier,
  VolumeExchange,
} from '../protocol/cluster.ts';
import { streamPair } from './files.ts';
import { pump, socketSink, socketSource } from './pump.ts';

/** How long an arrival can be kept or dropped. Milliseconds. */
const knownMs = 60 * 60_000;

/** Offers a carrier of streams as an exchange of connections, which can be passed on to other processes. */
export function memoryOverWire<Target, Kept>(carrier: MemoryCarrier<Target, Kept>): MemoryExchange<Target, Kept> {
  return { describe: target => carrier.describe(target), ...streamsOverWire(carrier) };
}

/** The same for a carrier of drafts. */
export function draftsOverWire(carrier: DraftCarrier): DraftExchange {
  return {
    ...memoryOverWire(carrier),
    openRest: async (target, key) => sent(await carrier.sendRest(target, key)),
    drop: target => carrier.drop(target),
  };
}

/** The same for a carrier of volumes. */
export function volumesOverWire(carrier: VolumeCarrier): VolumeExchange {
  const { states, fix, requireFixed, release } = carrier;
  return { states, fix, requireFixed, release, ...streamsOverWire(carrier) };
}

function streamsOverWire<Target, Kept>(
  carrier: Pick<MemoryCarrier<Target, Kept>, 'send' | 'receive'>,
): Omit<MemoryExchange<Target, Kept>, 'describe'> {
  const arrivals = new Map<string, { arrival: Arrival<Kept>; taken: Promise<void> }>();
  const take = (writeId: string) => {
    const found = arrivals.get(writeId);
    arrivals.delete(writeId);
    if (!found) throw new AtollError('not_found', 'What came has been kept or dropped already');
    return found;
  };
  return {
    openRead: async (target, key) => sent(await carrier.send(target, key)),
    async openWrite(target, key, sizeBytes) {
      const arrival = await carrier.receive(target, key, sizeBytes);
      const [own, given] = streamPair();
      const taken = arrival.take(socketSource(own));
      // A broken transfer is dropped here: the sender may be gone and never drop it. `keepWrite` reports the error.
      taken.catch(() => arrival.drop());
      const writeId = newUuid();
      arrivals.set(writeId, { arrival, taken });
      setTimeout(() => arrivals.delete(writeId), knownMs).unref();
      return { writeId, descriptor: given };
    },
    async keepWrite(writeId) {
      const { arrival, taken } = take(writeId);
      try {
        await taken;
      } catch (error) {
        await arrival.drop();
        throw error;
      }
      return arrival.keep();
    },
    dropWrite: writeId => take(writeId).arrival.drop(),
  };
}

/** A stream as a connection to read it from. */
function sent({ sizeBytes, bytes }: { sizeBytes: number; bytes: AsyncIterable<Uint8Array> }): {
  sizeBytes: number;
  descriptor: number;
} {
  const [own, given] = streamPair();
  void socketSink(own)
    .then(sink => pump(bytes, sink))
    .catch(() => {}); // the reader sees that it is too short
  return { sizeBytes, descriptor: given };
}
