import { isNoSpace } from '../base/disk-room.ts';
import { AtollError } from '../base/error.ts';
import { streamPair } from './files.ts';
import { bounded, fileSink, fileSource, pump, socketSink, socketSource } from './pump.ts';

/** What answers descriptors of files: of those that are read, and of those that are written and then kept. */
type Files<Read extends unknown[], Write extends unknown[], Kept> = {
  openRead(...what: Read): Promise<{ sizeBytes: number; descriptor: number }>;
  openWrite(...what: Write): Promise<{ writeId: string; descriptor: number }>;
  keepWrite(writeId: string, sizeBytes: number): Promise<Kept>;
  dropWrite(writeId: string): Promise<void>;
};

/**
 * Files as they can be sent to other machines: a node's descriptors are of files, and what crosses a network are
 * connections. A connection that breaks looks like one that has ended: so what is kept says how large it is, and
 * fewer bytes are refused (`unavailable`). `sizeOf`: how many may come, where that is known before; it is the room that
 * was kept on the disk for them, and whoever sends more would take the rest.
 */
export function overNetwork<Read extends unknown[], Write extends unknown[], Kept>(
  files: Files<Read, Write, Kept>,
  sizeOf: (...what: Write) => number = () => Number.POSITIVE_INFINITY,
): Files<Read, Write, Kept> {
  const writing = new Map<string, Promise<number>>();
  const take = (writeId: string) => {
    const bytes = writing.get(writeId);
    writing.delete(writeId);
    return bytes;
  };
  return {
    async openRead(...what) {
      const { sizeBytes, descriptor } = await files.openRead(...what);
      const [own, given] = streamPair();
      void socketSink(own)
        .then(sink => pump(fileSource(descriptor), sink))
        .catch(() => {}); // who reads sees that it is too short
      return { sizeBytes, descriptor: given };
    },
    async openWrite(...what) {
      const { writeId, descriptor } = await files.openWrite(...what);
      const [own, given] = streamPair();
      const bytes = counted(bounded(socketSource(own), sizeOf(...what)), descriptor);
      bytes.catch(() => {}); // reported by `keepWrite`
      writing.set(writeId, bytes);
      return { writeId, descriptor: given };
    },
    async keepWrite(writeId, sizeBytes) {
      try {
        // Its last bytes may still be on their way.
        const came = await take(writeId);
        if (came !== undefined && came !== sizeBytes)
          throw new AtollError('unavailable', `${came} bytes of ${sizeBytes} have come: send it again`);
      } catch (error) {
        await files.dropWrite(writeId).catch(() => {}); // it runs out
        throw isNoSpace(error) ? full(error) : error;
      }
      return files.keepWrite(writeId, sizeBytes);
    },
    async dropWrite(writeId) {
      const failure = await take(writeId)?.then(
        () => undefined,
        (error: unknown) => error,
      );
      await files.dropWrite(writeId);
      // Who writes sees no more than a connection that is closed.
      if (isNoSpace(failure)) throw full(failure);
    },
  };
}

const full = (cause: unknown) => new AtollError('no_space', 'The disk of that machine is full', { cause });

/** Writes what comes to a file, and answers how much that was. */
async function counted(source: AsyncIterable<Uint8Array>, descriptor: number): Promise<number> {
  let count = 0;
  const sink = fileSink(descriptor);
  await pump(source, {
    ...sink,
    async write(bytes) {
      await sink.write(bytes);
      count += bytes.length;
    },
  });
  return count;
}
