import { isNoSpace } from '../base/disk-room.ts';
import { AtollError } from '../base/error.ts';
import { streamPair } from './files.ts';
import { bounded, fileSink, fileSource, pump, socketSink, socketSource } from './pump.ts';

/** Methods that answer descriptors of files: some files are read, others are written and then kept. */
type Files<Read extends unknown[], Write extends unknown[], Kept> = {
  openRead(...what: Read): Promise<{ sizeBytes: number; descriptor: number }>;
  openWrite(...what: Write): Promise<{ writeId: string; descriptor: number }>;
  keepWrite(writeId: string, sizeBytes: number): Promise<Kept>;
  dropWrite(writeId: string): Promise<void>;
};

/**
 * Makes files fit to be sent to other machines: a node's descriptors are of files, while a network carries connections.
 * A broken connection looks like one that has ended, so keeping a file takes its size, and fewer bytes are refused
 * (`unavailable`). `sizeOf`: how many bytes may come, where that is known before. That much room was kept on the disk,
 * and a sender of more would use up the rest.
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
        .catch(() => {}); // the reader sees that it is too short
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
        // The last bytes may still be on their way.
        const came = await take(writeId);
        if (came !== undefined && came !== sizeBytes)
          throw new AtollError('unavailable', `${came} bytes of ${sizeBytes} have come: send it again`);
      } catch (error) {
        await files.dropWrite(writeId).catch(() => {}); // it expires by itself
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
      // The writer itself only sees a closed connection.
      if (isNoSpace(failure)) throw full(failure);
    },
  };
}

const full = (cause: unknown) => new AtollError('no_space', 'The disk of that machine is full', { cause });

/** Writes the incoming bytes to a file, and answers their number. */
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
