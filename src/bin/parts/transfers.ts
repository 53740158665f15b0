import { receiveParts, sendParts } from '../../gate/parts.ts';
import type {
  LayerProtocol,
  MemoryExchange,
  PauseExchange,
  SnapshotExchange,
  TransferProtocol,
  VolumeExchange,
} from '../../protocol/cluster.ts';
import type { UploadExchange } from '../../protocol/upload.ts';
import { bounded, fileSink, fileSource, pump, socketSink, socketSource } from '../../wire/pump.ts';

type Exchanges = {
  layers: LayerProtocol;
  pauses: PauseExchange;
  snapshots: SnapshotExchange;
  uploads: UploadExchange;
  volumeCopies: VolumeExchange;
};

/** What a machine exchanges with a store by signed URLs: the node has the files, the gate has the network. */
export function transfersOf({ layers, pauses, snapshots, uploads, volumeCopies }: Exchanges): TransferProtocol {
  return {
    async sendLayer(digest, urls) {
      const { descriptor } = await layers.openRead(digest);
      await sendParts(fileSource(descriptor), urls);
    },
    async receiveLayer(digest, sizeBytes, urls) {
      const { writeId, descriptor } = await layers.openWrite(digest, sizeBytes);
      const parts = bounded(receiveParts(urls), sizeBytes);
      await droppedUnless(pump(parts, fileSink(descriptor)), () => layers.dropWrite(writeId));
      await layers.keepWrite(writeId, sizeBytes);
    },
    async receiveUpload(upload, sizeBytes, urls) {
      const { writeId, descriptor } = await uploads.openWrite(upload, sizeBytes);
      const parts = bounded(receiveParts(urls), sizeBytes);
      await droppedUnless(pump(parts, fileSink(descriptor)), () => uploads.dropWrite(writeId));
      await uploads.keepWrite(writeId, sizeBytes);
    },
    sendPause: (target, key, urls) => sendMemory(pauses, target, key, urls),
    receivePause: (target, key, sizeBytes, urls) => receiveMemory(pauses, { target, key, sizeBytes }, urls),
    sendSnapshot: (snapshotId, key, urls) => sendMemory(snapshots, snapshotId, key, urls),
    receiveSnapshot: (target, key, sizeBytes, urls) => receiveMemory(snapshots, { target, key, sizeBytes }, urls),
    sendVolume: (fixedId, key, urls) => sendMemory(volumeCopies, fixedId, key, urls),
    receiveVolume: (target, key, sizeBytes, urls) => receiveMemory(volumeCopies, { target, key, sizeBytes }, urls),
  };
}

async function sendMemory<Target, Kept>(
  memory: Pick<MemoryExchange<Target, Kept>, 'openRead'>,
  target: Target,
  key: string,
  urls: string[],
): Promise<void> {
  const { descriptor } = await memory.openRead(target, key);
  await sendParts(socketSource(descriptor), urls);
}

async function receiveMemory<Target, Kept>(
  memory: Omit<MemoryExchange<Target, Kept>, 'describe' | 'openRead'>,
  { target, key, sizeBytes }: { target: Target; key: string; sizeBytes: number },
  urls: string[],
): Promise<Kept> {
  const { writeId, descriptor } = await memory.openWrite(target, key, sizeBytes);
  const bytes = socketSink(descriptor).then(sink => pump(receiveParts(urls), sink));
  await droppedUnless(bytes, () => memory.dropWrite(writeId));
  return memory.keepWrite(writeId);
}

async function droppedUnless(bytes: Promise<void>, drop: () => Promise<void>): Promise<void> {
  try {
    await bytes;
  } catch (error) {
    await drop().catch(() => {}); // it runs out
    throw error;
  }
}
