import type { LayerProtocol } from '../protocol/cluster.ts';
import { pump, socketSink, socketSource } from './pump.ts';

/** Copies a layer from one machine to another, through this process. Errors: those of `LayerProtocol`. */
export async function copyLayer(digest: string, from: LayerProtocol, to: LayerProtocol): Promise<void> {
  const { sizeBytes, descriptor } = await from.openRead(digest);
  const source = socketSource(descriptor);
  try {
    const write = await to.openWrite(digest, sizeBytes);
    try {
      await pump(source, await socketSink(write.descriptor));
    } catch (error) {
      await to.dropWrite(write.writeId).catch(() => {}); // it expires by itself
      throw error;
    }
    await to.keepWrite(write.writeId, sizeBytes);
  } finally {
    await source.return(undefined);
  }
}
