import type { Transform } from 'node:stream';
import { AtollError, messageOf } from '../../base/error.ts';

/** Fast rather than small: the network between a sandbox and its client is seldom slower than this compression. */
export const gzipLevel = 1;
const pieceBytes = 256 << 10;

/** Compresses `body`, as fast as the result is taken. */
export function gzip(body: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return through(body, async () => (await import('node:zlib')).createGzip({ level: gzipLevel, chunkSize: pieceBytes }));
}

/** Decompresses `body`, as fast as the result is taken. Unless it is whole gzip, reading fails with `invalid`. */
export function gunzip(body: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return through(body, async () => (await import('node:zlib')).createGunzip({ chunkSize: pieceBytes }));
}

// zlib is loaded at the first use: most sandboxes never need it.
function through(
  body: AsyncIterable<Uint8Array>,
  create: () => Promise<Transform>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let output: AsyncIterator<Buffer<ArrayBuffer>> | undefined;
  let transform: Transform | undefined;
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        if (!output) {
          transform = await create();
          output = transform[Symbol.asyncIterator]() as AsyncIterator<Buffer<ArrayBuffer>>;
          void feed(body, transform);
        }
        const next = await output
          .next()
          .catch(error =>
            Promise.reject(new AtollError('invalid', `the compressed data is broken: ${messageOf(error)}`)),
          );
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      },
      cancel() {
        transform?.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

async function feed(body: AsyncIterable<Uint8Array>, transform: Transform): Promise<void> {
  try {
    for await (const chunk of body) {
      if (transform.destroyed) return;
      if (transform.write(chunk)) continue;
      await roomIn(transform);
    }
    transform.end();
  } catch (error) {
    transform.destroy(error instanceof Error ? error : new Error(messageOf(error)));
  }
}

/** Resolves once a stream takes more, or is over. Leaves no listener behind: a large body waits many times. */
function roomIn(transform: Transform): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      transform.off('drain', done).off('close', done);
      resolve();
    };
    transform.on('drain', done).on('close', done);
  });
}
