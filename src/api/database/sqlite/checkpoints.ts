/** Writes after which the log is copied into the database: some hundred pages. */
const writesMax = 500;

/**
 * The thread's program, as text: a platform compiled into one file has no other file to make a thread from. It answers
 * each message once the log is in the database, as far as possible, and ends when told to.
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

/** Copies a log into its database in a thread: that waits for the disk, so that nobody else has to. */
type Checkpoints = {
  /** Counts a write. */
  written(): void;
  /** Ends the thread; after that the database may be closed. */
  end(): Promise<void>;
};

/**
 * Checkpoints of the database at `path`. The thread is made only after that many writes: most of the command line's
 * processes make fewer. Where it can't be made, or ends, writers do its work.
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
    // It then stays busy, and gets no more requests.
    for (const name of ['error', 'close']) made.addEventListener(name, () => ended.resolve());
    // The process may end without waiting for it.
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
