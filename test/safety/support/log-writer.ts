// `bun log-writer.ts DATABASE`: stores each word it reads, one per line, and reports whether the disk has it.
import { sql } from 'kysely';
import { connectStore } from '../../../src/api/database/database.ts';

const path = process.argv[2];
if (path === undefined) throw new Error('usage: log-writer.ts DATABASE');
const store = connectStore({ kind: 'sqlite', path });
await sql`create table if not exists words (word text)`.execute(store.db);
console.log('ready');
for await (const word of console) {
  await sql`insert into words values (${word})`.execute(store.db);
  console.log(
    await store.flushed().then(
      () => 'kept',
      (error: Error) => `refused: ${error.message}`,
    ),
  );
}
