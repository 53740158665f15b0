/** Writes after which what the log has is put into the database: some hundred pages. */
const writesMax = 500;

/**
 * What the thread runs, as text: a program that is one file has no other that a thread could be made from. It answers
 * each message once what the log has is in the database, as far as it could be put there, and ends by being told so.
 */
const program = `
import { Database } from 'bun:sqlite';
const open = {};
self.onmessage = ({ data: { path, isEnd } }) => {
  if (isEnd) {
    open.database?.close();
    return postMessage('ended');
  }
  try {
    open.database ??= new Database(path, { readwrite: true });
    open.database.run('pragma wal_checkpoint(passive)');
  } catch {
    // The next one tries again; where none can, writers do it themselves.
  }
  postMessage('done');
};
`;

/** Puts what a log has into its database, in a thread: it waits for the disk, and nobody waits for that. */
type Checkpoints = {
  /** Something was written. */
  written(): void;
  /** Ends the thread; the database may be closed then. */
  end(): Promise<void>;
};

/**
 * Checkpoints of the database at `path`. The thread is made when first so much was written: most of the command line's
 * processes write less. Where it can't be made, or ends, writers do its work.
 */
export function checkpointsOf(path: string): Checkpoints {
  let worker: Worker | undefined;
  let writes = 0;
  let isBusy = false;
  const ended = Promise.withResolvers<void>();
  const start = () => {
    const url = URL.createObjectURL(new Blob([program], { type: 'text/javascript' }));
    const made = new Worker(url, { smol: true });
    made.addEventListener('message', ({ data }) => {
      if (data === 'ended') return ended.resolve();
      isBusy = false;
      URL.revokeObjectURL(url);
    });
    // It stays busy then, and is asked nothing any more.
    for (const name of ['error', 'close']) made.addEventListener(name, () => ended.resolve());
    // The process may end without it.
    made.unref();
    return made;
  };
  return {
    written() {
      if (++writes < writesMax || isBusy) return;
      writes = 0;
      isBusy = true;
      worker ??= start();
      worker.postMessage({ path });
    },
    async end() {
      if (!worker) return;
      worker.ref();
      worker.postMessage({ path, isEnd: true });
      await ended.promise;
      worker.terminate();
    },
  };
}
