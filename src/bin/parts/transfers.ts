import { receiveParts, sendParts } from '../../gate/parts.ts';
import type { LayerProtocol, PauseExchange, TransferProtocol } from '../../protocol/cluster.ts';
import { fileSink, fileSource, pump, socketSink, socketSource } from '../../wire/pump.ts';

/** What a machine sends to a store and gets from it by signed URLs: the node has files, the gate the network. */
export function transfersOf({ layers, pauses }: { layers: LayerProtocol; pauses: PauseExchange }): TransferProtocol {
  return {
    async sendLayer(digest, urls) {
      const { descriptor } = await layers.openRead(digest);
      await sendParts(fileSource(descriptor), urls);
    },
    async receiveLayer(digest, sizeBytes, urls) {
      const { writeId, descriptor } = await layers.openWrite(digest, sizeBytes);
      await droppedUnless(pump(receiveParts(urls), fileSink(descriptor)), () => layers.dropWrite(writeId));
      await layers.keepWrite(writeId);
    },
    async sendPause(target, key, urls) {
      const { descriptor } = await pauses.openRead(target, key);
      await sendParts(socketSource(descriptor), urls);
    },
    async receivePause(target, key, sizeBytes, urls) {
      const { writeId, descriptor } = await pauses.openWrite(target, key, sizeBytes);
      const bytes = socketSink(descriptor).then(sink => pump(receiveParts(urls), sink));
      await droppedUnless(bytes, () => pauses.dropWrite(writeId));
      return pauses.keepWrite(writeId);
    },
  };
}

async function droppedUnless(bytes: Promise<void>, drop: () => Promise<void>): Promise<void> {
  try {
    await bytes;
  } catch (error) {
    await drop().catch(() => {}); // it runs out
    throw error;
  }
}
