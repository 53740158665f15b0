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

/** Layers that come at a time. */
const writesMax = 16;
/** The longest that one may take. */
const writeTimeoutMs = 3_600_000;

type Ending = 'keep' | 'drop';

/**
 * The layers of this node for other nodes, and theirs for this one. `space`: of the disk that holds them; `cache`: the
 * machine's, from which a layer comes without a way over the network.
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
        // Who asks is about to use those that are here.
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
        // Nobody hears its ID, and so nobody ends it.
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

/** Nobody else comes between what it asks for and what it gets. */
function admit(space: Pick<Space, 'reserve'>, writes: number, sizeBytes: number): Room {
  if (writes >= writesMax)
    throw new AtollError('unavailable', `${writesMax} layers come to this node, which is the most at a time`);
  if (sizeBytes > layerLimits.bytesMax)
    throw new AtollError('invalid', `the layer has ${sizeBytes} bytes, and ${layerLimits.bytesMax} is the most`);
  return space.reserve('a layer that comes to this machine', sizeBytes);
}

/** A layer is what its name says, whoever sent it. */
async function checked(image: string, digest: string): Promise<string> {
  await syncPath(image);
  if ((await digestOf(image)) !== digest) throw new AtollError('invalid', `what came is not layer ${digest}`);
  return digest;
}
