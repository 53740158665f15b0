import { expect, test } from 'bun:test';
import { Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import pg from 'pg';
import type { Tables } from '../schema.ts';
import { PostgresDriver } from './driver.ts';
import type { Primary } from './primary.ts';

// What becomes of a transaction whose begin fails while a query after it is already on its way. Real servers do that
// only as a standby, or when an operator cancels at the right moment: here the connection reports it.

/** A server that answers a begin with an error; what it was told, and how its connection was given back. */
function serverThatRefusesToBegin(code: string) {
  const said: string[] = [];
  const released: unknown[] = [];
  const client = {
    async query(asked: string | { text: string }) {
      const text = typeof asked === 'string' ? asked : asked.text;
      said.push(text.split(' ')[0] ?? '');
      await Bun.sleep(1);
      // After a begin that failed in the middle, the transaction is aborted.
      const why = text.startsWith('start transaction') ? code : '25P02';
      throw Object.assign(new pg.DatabaseError('refused', 1, 'error'), { code: why });
    },
    release: (error: unknown) => void released.push(error),
  };
  const primary = { connect: async () => client, timelineOf: () => null, lost() {} } as unknown as Primary;
  return { db: databaseOf(primary), said, released };
}

const databaseOf = (primary: Primary) =>
  new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new PostgresDriver(primary),
      createIntrospector: made => new PostgresIntrospector(made),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });

const refusals = { 'a server that follows another one': '25006', 'a begin that was given up': '57014' };
for (const [what, code] of Object.entries(refusals)) {
  test(`${what}: no change is sent, and the connection is not used again`, async () => {
    const { db, said, released } = serverThatRefusesToBegin(code);
    const work = db.transaction().execute(transaction => transaction.deleteFrom('events').execute());
    await expect(work).rejects.toMatchObject({ code: 'unavailable', detail: 'database_unavailable' });
    expect(said).toEqual(['start']);
    expect(released).toEqual([expect.any(Error)]);
  });

  test(`${what}: a question that went with the begin fails for its reason`, async () => {
    const { db, said } = serverThatRefusesToBegin(code);
    const work = db.transaction().execute(transaction => transaction.selectFrom('events').select('type').execute());
    await expect(work).rejects.toMatchObject({ code: 'unavailable', detail: 'database_unavailable' });
    expect(said).toEqual(['start', 'select']);
  });
}

const told = { '23505': 'conflict', '40P01': 'unavailable', '22021': 'invalid' };
for (const [code, answer] of Object.entries(told)) {
  test(`an error of class ${code} is ${answer}: whoever asked can do something about it`, async () => {
    const client = {
      async query({ text }: { text: string }) {
        throw Object.assign(new pg.DatabaseError(text, 1, 'error'), { code });
      },
      release() {},
    };
    const primary = { connect: async () => client, timelineOf: () => null, lost() {} } as unknown as Primary;
    const db = databaseOf(primary);
    await expect(db.deleteFrom('events').execute()).rejects.toMatchObject({ code: answer });
  });
}

/** A server that goes away at a commit, and afterwards tells its outcome; null: it does not know. */
function serverThatLosesAnswers(status: string | null, timelineAfter = 1) {
  const asked: unknown[] = [];
  let timeline = 1;
  const client = {
    async query(text: string, values?: unknown[]) {
      if (text.startsWith('start transaction')) return [{}, { rows: [{ id: '4711' }] }];
      if (!text.includes('pg_xact_status')) {
        timeline = timelineAfter;
        throw new Error('the connection is gone');
      }
      asked.push(values);
      return { rows: [{ status }] };
    },
    release() {},
  };
  const primary = { connect: async () => client, timelineOf: () => timeline, lost() {} } as unknown as Primary;
  return {
    commit: () =>
      databaseOf(primary)
        .transaction()
        .execute(async () => 'done'),
    asked,
  };
}

test('a commit whose answer was lost is done if the server says so about its transaction', async () => {
  const { commit, asked } = serverThatLosesAnswers('committed');
  expect(await commit()).toBe('done');
  expect(asked).toEqual([['4711']]);
});

test('a commit whose answer was lost changed nothing if the server has rolled it back', async () => {
  const { commit } = serverThatLosesAnswers('aborted');
  await expect(commit()).rejects.toMatchObject({ code: 'unavailable', detail: 'database_unavailable' });
});

test('nobody knows what a commit did after another server was promoted: its ID may be another’s', async () => {
  const { commit, asked } = serverThatLosesAnswers('committed', 2);
  await expect(commit()).rejects.toMatchObject({ code: 'unavailable', detail: 'database_outcome_unknown' });
  expect(asked).toEqual([]);
});
