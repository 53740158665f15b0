import { closeSync, read, write } from 'node:fs';
import { promisify } from 'node:util';
import { isNoSpace } from '../../../base/disk-room.ts';
import { AtollError } from '../../../base/error.ts';
import type { NewVolumeEntryQuery } from '../../../protocol/api/volume.ts';
import type { NewVolumeEntry, VolumeEntry, VolumeProtocol } from '../../../protocol/volume.ts';
import { volumeMoves } from './volumes.ts';
import type { VolumeRecord } from '../record.ts';
import type { VolumeCaller } from '../../credential/caller.ts';
import type { Carried, Nodes } from '../../placement/nodes.ts';

const readFrom = promisify(read);
const writeTo = promisify(write);

/** The default owner of what is made in a volume. */
const defaultOwner = 9090;
const defaultModes = { directory: 0o777, file: 0o666 } as const;
/** Bytes read at once: together with the socket's own buffer, all the memory that a download takes. */
const pieceBytes = 1 << 20;

/**
 * The volume of a caller, if the request is for that one. Throws `forbidden` for every other volume, existing or not,
 * and `unavailable` while it is moving to another machine.
 */
export function contentOf(
  nodes: Nodes,
  { volume }: VolumeCaller,
  volumeId: string,
): { volume: VolumeRecord; content: VolumeProtocol; carried: Carried | undefined } {
  if (volume.volumeId !== volumeId.toLowerCase())
    throw new AtollError('forbidden', `The token is not for volume "${volumeId}"`);
  if (volume.movingTo !== null) throw volumeMoves(volume.name);
  return { volume, content: nodes.get(volume.nodeId).volumes, carried: nodes.carried };
}

/**
 * Removes a path with everything below it, when it is its team's turn. Errors: those of `VolumeProtocol.removeEntry`.
 */
export async function removePath(
  content: Pick<VolumeProtocol, 'removeEntry'>,
  { volumeId, teamId }: Pick<VolumeRecord, 'volumeId' | 'teamId'>,
  path: string,
): Promise<void> {
  await content.removeEntry(volumeId, path, teamId).catch(error => {
    // A machine of the previous release accepts no team. Anything else that is invalid fails again.
    if (error instanceof AtollError && error.code === 'invalid') return content.removeEntry(volumeId, path);
    throw error;
  });
}

/** Puts a file on the disk when it is its team's turn. */
type InTurn = (work: () => Promise<VolumeEntry>) => Promise<VolumeEntry>;

/** The requested attributes, completed with the defaults. */
export function newEntry(kind: keyof typeof defaultModes, query: NewVolumeEntryQuery): NewVolumeEntry {
  const { uid = defaultOwner, gid = defaultOwner, mode = defaultModes[kind], force = false } = query;
  return { uid, gid, mode, force };
}

/**
 * Takes an upload into a volume. The file is there whole or not at all. Throws `conflict`, `not_found`, `no_space`, and
 * `canceled` or `invalid` for an upload that ends too early.
 */
export async function uploadFile(
  { content, carried }: { content: VolumeProtocol; carried: Carried | undefined },
  volumeId: string,
  path: string,
  entry: NewVolumeEntry,
  body: { stream: ReadableStream<Uint8Array> | null; length: number | null; signal: AbortSignal },
  inTurn: InTurn = work => work(),
): Promise<VolumeEntry> {
  const { writeId, descriptor } = await content.openWrite(volumeId, path, entry);
  let written = 0;
  const parts = partsOf(body.stream, bytes => (written += bytes));
  try {
    await (carried ? carried.write(descriptor, parts) : writeParts(descriptor, parts));
    if (body.signal.aborted || (body.length !== null && written !== body.length))
      throw new AtollError('invalid', 'The upload ended too early: send it again');
  } catch (error) {
    await content.dropWrite(writeId).catch((reason: unknown) => {
      // Only this error says why a file on another machine takes no more.
      if (reason instanceof AtollError && reason.code === 'no_space') throw reason;
    });
    throw error;
  }
  return inTurn(() => content.keepWrite(writeId, written));
}

async function writeParts(descriptor: number, parts: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const part of parts) await writeAll(descriptor, part);
  } finally {
    closeSync(descriptor);
  }
}

/** A body breaks off only when its client goes away. */
async function* partsOf(
  stream: ReadableStream<Uint8Array> | null,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const part of stream ?? []) {
      yield part;
      count(part.length);
    }
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
 * `sizeBytes` bytes of a descriptor, read only as fast as the client takes them; closes it in the end. A file that has
 * become shorter meanwhile, or a broken connection, breaks off the answer, because its length was promised. `signal`:
 * aborts when the client goes away.
 */
export function streamDescriptor(
  descriptor: number,
  sizeBytes: number,
  signal: AbortSignal,
  carried: Carried | undefined,
): ReadableStream<Uint8Array> {
  let isWanted = true;
  let isTaken = false;
  const close = () => {
    if (!isTaken) closeSync(descriptor);
    isTaken = true;
  };
  // Nothing else reports a client that goes away before it asks for the first byte.
  signal.addEventListener('abort', close, { once: true });
  // With a direct stream of Bun's, one buffer is enough for the whole file: it is free again after each flush.
  const source: Bun.DirectUnderlyingSource<Uint8Array<ArrayBuffer>> = {
    type: 'direct',
    async pull(controller) {
      if (isTaken) return;
      isTaken = true;
      let left = sizeBytes;
      for await (const piece of carried ? carried.read(descriptor) : fileParts(descriptor, sizeBytes)) {
        const wanted = piece.subarray(0, left);
        left -= wanted.length;
        void controller.write(wanted as Uint8Array<ArrayBuffer>);
        await controller.flush(true);
        if (!isWanted || left === 0) break;
      }
      if (isWanted && left > 0) throw new AtollError('internal', 'the file became shorter while it was read');
      if (isWanted) controller.close();
    },
    cancel() {
      isWanted = false;
    },
  };
  return new ReadableStream(source);
}

/** The content of a file in one buffer: a part is valid until the next one is requested. Closes the file. */
async function* fileParts(descriptor: number, sizeBytes: number): AsyncGenerator<Uint8Array> {
  try {
    const bytes = new Uint8Array(Math.max(1, Math.min(pieceBytes, sizeBytes)));
    for (;;) {
      const { bytesRead } = await readFrom(descriptor, bytes, 0, bytes.length, null);
      if (bytesRead === 0) return;
      yield bytes.subarray(0, bytesRead);
    }
  } finally {
    closeSync(descriptor);
  }
}
