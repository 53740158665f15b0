// `bun refuse-log.ts FOLDER`: lets a disk refuse what a database writes to its log, and prints what the database
// answered and what the disk has in the end, as `Refused` in JSON. It needs mounts of its own: a copy of the disk's
// mount in a namespace that somebody makes meanwhile would keep the disk in use.
import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { LossyDisks } from '../../proof/power/lossy-disk.ts';
import { waitFor } from '../../support/process.ts';

/** `answers`: `ready`, and those to the first word, to one while the disk refuses, and to the last. `words`: on the disk. */
export type Refused = { answers: (string | undefined)[]; gaveUp: boolean; words: string[] };

const [folder = ''] = process.argv.slice(2);
const { disk, fail } = await (await LossyDisks.make(folder)).failing();
await using _ = disk;
const path = join(disk.point, 'words.db');
const answers = await write();
const gaveUp = disk.isReadOnly();
// The kernel drops its cached files, and only the disk is left.
await disk.repair();
using database = new Database(path);
const rows = database.query<{ word: string }, []>('select word from words').all();
console.log(JSON.stringify({ answers, gaveUp, words: rows.map(({ word }) => word) } satisfies Refused));

async function write(): Promise<(string | undefined)[]> {
  const writer = Bun.spawn([process.execPath, join(import.meta.dir, 'log-writer.ts'), path], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const lines = writer.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const answer = async () => (await lines.read()).value?.trim();
  const keep = async (word: string) => {
    void writer.stdin.write(`${word}\n`);
    await writer.stdin.flush();
    return answer();
  };
  try {
    const ready = await answer();
    const before = await keep('before');
    fail({ refusedWrites: 100 });
    const refused = await keep('refused');
    fail({});
    // SQLite learns of it through its own descriptor, once.
    await waitFor('the disk to be well again', async () => (await keep('after')) === 'kept');
    return [ready, before, refused, await keep('last')];
  } finally {
    writer.kill('SIGKILL');
    await writer.exited;
  }
}
