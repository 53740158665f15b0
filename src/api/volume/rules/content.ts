import { closeSync, read, write } from 'node:fs';
import { promisify } from 'node:util';
import { isNoSpace } from '../../../base/disk-room.ts';
import { AtollError } from '../../../base/error.ts';
import type { NewVolumeEntryQuery } from '../../../protocol/api/volume.ts';
import type { NewVolumeEntry, VolumeEntry, VolumeProtocol } from '../../../protocol/volume.ts';
import type { VolumeRecord } from '../record.ts';
import type { VolumeCaller } from '../../credential/caller.ts';
import type { Nodes } from '../../placement/nodes.ts';

const readFrom = promisify(read);
const writeTo = promisify(write);

/** What belongs to whoever makes something in a volume without saying whose it is. */
const defaultOwner = 9090;
const defaultModes = { directory: 0o777, file: 0o666 } as const;
/** Bytes that are read at once: with the socket's own buffer it is all the memory that a download takes. */
const pieceBytes = 1 << 20;

/**
 * The volume of a caller, where it is the one that he asks for. Throws `forbidden` for every other one, there or not.
 */
export function contentOf(
  nodes: Nodes,
  { volume }: VolumeCaller,
  volumeId: string,
): { volume: VolumeRecord; content: VolumeProtocol } {
  if (volume.volumeId !== volumeId.toLowerCase())
    throw new AtollError('forbidden', `The token is not for volume "${volumeId}"`);
  return { volume, content: nodes.get(volume.nodeId).volumes };
}

/** What is asked for, with the defaults. */
export function newEntry(kind: keyof typeof defaultModes, query: NewVolumeEntryQuery): NewVolumeEntry {
  const { uid = defaultOwner, gid = defaultOwner, mode = defaultModes[kind], force = false } = query;
  return { uid, gid, mode, force };
}

/**
 * Takes an upload into a volume. The file is there whole or not at all. Throws `conflict`, `not_found`, `no_space`, and
 * `canceled` or `invalid` for one that ends too early.
 */
export async function uploadFile(
  content: VolumeProtocol,
  volumeId: string,
  path: string,
  entry: NewVolumeEntry,
  body: { stream: ReadableStream<Uint8Array> | null; length: number | null; signal: AbortSignal },
): Promise<VolumeEntry> {
  const { writeId, descriptor } = await content.openWrite(volumeId, path, entry);
  try {
    const written = await writeParts(descriptor, body.stream).finally(() => closeSync(descriptor));
    if (body.signal.aborted || (body.length !== null && written !== body.length))
      throw new AtollError('invalid', 'The upload ended too early: send it again');
  } catch (error) {
    await content.dropWrite(writeId).catch(() => {});
    throw error;
  }
  return content.keepWrite(writeId);
}

async function writeParts(descriptor: number, stream: ReadableStream<Uint8Array> | null): Promise<number> {
  let written = 0;
  for await (const part of partsOf(stream)) {
    await writeAll(descriptor, part);
    written += part.length;
  }
  return written;
}

/** Only a client that goes away breaks a body off. */
async function* partsOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  try {
    if (stream) yield* stream;
  } catch (cause) {
    throw new AtollError('canceled', 'The client ended the upload before its end', { cause });
  }
}

async function writeAll(descriptor: number, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await writeTo(descriptor, bytes, done, bytes.length - done, null).catch(
      (error: unknown) => {
        throw isNoSpace(error) ? new AtollError('no_space', 'The volume is full', { cause: error }) : error;
      },
    );
    done += bytesWritten;
  }
}

/**
 * What a descriptor gives, `sizeBytes` of it, read only as fast as the client takes it; closes it in the end. A file
 * that became shorter meanwhile breaks the answer off: its length was promised. With `signal` the client goes away.
 */
export function streamDescriptor(
  descriptor: number,
  sizeBytes: number,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  let isWanted = true;
  let isOpen = true;
  const close = () => {
    if (isOpen) closeSync(descriptor);
    isOpen = false;
  };
  // A client that goes before the first byte was asked for is reported to nobody else.
  signal.addEventListener('abort', close, { once: true });
  // With a direct stream of Bun's one buffer does for the whole file: it is free again once it was flushed.
  const source: Bun.DirectUnderlyingSource<Uint8Array<ArrayBuffer>> = {
    type: 'direct',
    async pull(controller) {
      signal.removeEventListener('abort', close);
      if (!isOpen) return;
      try {
        const bytes = new Uint8Array(Math.min(pieceBytes, sizeBytes));
        for (let left = sizeBytes; isWanted && left > 0;) {
          const { bytesRead } = await readFrom(descriptor, bytes, 0, Math.min(bytes.length, left), null);
          if (bytesRead === 0) throw new AtollError('internal', 'the file became shorter while it was read');
          void controller.write(bytes.subarray(0, bytesRead));
          await controller.flush(true);
          left -= bytesRead;
        }
      } finally {
        close();
      }
      if (isWanted) controller.close();
    },
    cancel() {
      isWanted = false;
    },
  };
  return new ReadableStream(source);
}
