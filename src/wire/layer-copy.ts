import type { LayerProtocol } from '../protocol/cluster.ts';
import { streamPair } from './files.ts';
import { fileSink, fileSource, pump, socketSink, socketSource } from './pump.ts';

/** Copies a layer from one machine to another, through this process. Errors: those of `LayerProtocol`. */
export async function copyLayer(digest: string, from: LayerProtocol, to: LayerProtocol): Promise<void> {
  const { sizeBytes, descriptor } = await from.openRead(digest);
  const source = socketSource(descriptor);
  try {
    const write = await to.openWrite(digest, sizeBytes);
    try {
      await pump(source, await socketSink(write.descriptor));
    } catch (error) {
      await to.dropWrite(write.writeId).catch(() => {}); // it runs out
      throw error;
    }
    await to.keepWrite(write.writeId);
  } finally {
    await source.return(undefined);
  }
}

/**
 * Layers as they can be sent to other machines: a node's descriptors are of files, and what crosses a network are
 * connections.
 */
export function layersOverNetwork(layers: LayerProtocol): LayerProtocol {
  const writing = new Map<string, Promise<void>>();
  const over = (writeId: string) => {
    const bytes = writing.get(writeId);
    writing.delete(writeId);
    return bytes;
  };
  return {
    missing: digests => layers.missing(digests),
    bytes: digest => layers.bytes(digest),
    async openRead(digest) {
      const { sizeBytes, descriptor } = await layers.openRead(digest);
      const [own, given] = streamPair();
      void socketSink(own)
        .then(sink => pump(fileSource(descriptor), sink))
        .catch(() => {}); // who reads sees that it is too short
      return { sizeBytes, descriptor: given };
    },
    async openWrite(digest, sizeBytes) {
      const { writeId, descriptor } = await layers.openWrite(digest, sizeBytes);
      const [own, given] = streamPair();
      const bytes = pump(socketSource(own), fileSink(descriptor));
      bytes.catch(() => {}); // reported by `keepWrite`
      writing.set(writeId, bytes);
      return { writeId, descriptor: given };
    },
    async keepWrite(writeId) {
      // Its last bytes may still be on their way.
      await over(writeId);
      await layers.keepWrite(writeId);
    },
    async dropWrite(writeId) {
      void over(writeId);
      await layers.dropWrite(writeId);
    },
  };
}
