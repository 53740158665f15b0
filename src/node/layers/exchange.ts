import { constants, openSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { syncPath } from '../../base/sync.ts';
import type { LayerProtocol } from '../../protocol/cluster.ts';
import type { Room } from '../space/reservations.ts';
import type { Space } from '../space/space.ts';
import { countWritten } from '../space/written.ts';
import { layerLimits } from './limits.ts';
import type { LayerCache } from './shared-cache.ts';
import { digestOf, type Layers } from './store.ts';

/** How many layers may arrive at a time. */
const writesMax = 16;
/** The longest time that one layer may take. */
const writeTimeoutMs = 3_600_000;

type Ending = 'keep' | 'drop';

/**
 * Gives this node's layers to other nodes, and takes theirs. `space` is that of the disk that holds them; `cache` is
 * the machine's, which provides a layer without the network.
 */
export function layerExchange(
  layers: Layers,
  space: Pick<Space, 'reserve'>,
  cache: Pick<LayerCache, 'takeLayer'>,
): LayerProtocol {
  const writes = new Map<string, { end(how: Ending): void; ended: Promise<void>; timer: Timer }>();
  const end = async (writeId: string, how: Ending) => {
    const write = writes.get(writeId);
    if (!write) throw new AtollError('not_found', 'The layer has ended already');
    writes.delete(writeId);
    clearTimeout(write.timer);
    write.end(how);
    await write.ended;
  };
  return {
    async bytes(digest) {
      if (!layers.has(digest)) throw notHere(digest);
      return layers.bytes(digest);
    },
    async missing(digests) {
      const absent: string[] = [];
      for (const digest of digests)
        // The asking node is about to use the layers that are here.
        if (layers.has(digest) || (await cache.takeLayer(digest))) layers.touch(digest);
        else absent.push(digest);
      return absent;
    },
    async openRead(digest) {
      if (!layers.has(digest)) throw notHere(digest);
      return { sizeBytes: layers.bytes(digest), descriptor: openSync(layers.imagePath(digest), constants.O_RDONLY) };
    },
    async openWrite(digest, sizeBytes) {
      const room = admit(space, writes.size, sizeBytes);
      const opened = Promise.withResolvers<number>();
      const { promise: how, resolve } = Promise.withResolvers<Ending>();
      const ended = layers
        .make(async image => {
          opened.resolve(openSync(image, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600));
          using _written = countWritten(room, image);
          return (await how) === 'keep' ? checked(image, digest) : null;
        })
        .then(() => {})
        .finally(() => room[Symbol.dispose]());
      ended.catch(opened.reject);
      const writeId = newUuid();
      const timer = setTimeout(() => void end(writeId, 'drop').catch(() => {}), writeTimeoutMs);
      timer.unref();
      writes.set(writeId, { end: resolve, ended, timer });
      try {
        return { writeId, descriptor: await opened.promise };
      } catch (error) {
        // Nobody learns the write's ID, so nobody would end it.
        writes.delete(writeId);
        clearTimeout(timer);
        throw error;
      }
    },
    keepWrite: writeId => end(writeId, 'keep'),
    dropWrite: writeId => end(writeId, 'drop'),
  };
}

const notHere = (digest: string) => new AtollError('not_found', `layer ${digest} is not on this node`);

/** Nobody else gets in between the question for room and the answer. */
function admit(space: Pick<Space, 'reserve'>, writes: number, sizeBytes: number): Room {
  if (writes >= writesMax)
    throw new AtollError('unavailable', `${writesMax} layers come to this node, which is the most at a time`);
  if (sizeBytes > layerLimits.bytesMax)
    throw new AtollError('invalid', `the layer has ${sizeBytes} bytes, and ${layerLimits.bytesMax} is the most`);
  return space.reserve('a layer that comes to this machine', sizeBytes);
}

/** Checks that a layer is what its name says, whoever sent it. */
async function checked(image: string, digest: string): Promise<string> {
  await syncPath(image);
  if ((await digestOf(image)) !== digest) throw new AtollError('invalid', `what came is not layer ${digest}`);
  return digest;
}
