import { expect, test } from 'bun:test';
import { Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import pg from 'pg';
import { AtollError } from '../../../base/error.ts';
import type { Tables } from '../schema.ts';
import { isOutcomeUnknown, PostgresDriver } from './driver.ts';
import type { Primary } from './primary.ts';

// What becomes of a transaction whose begin fails, where what was asked behind it is on its way already. That servers
// do so takes a standby, or an operator who cancels at the right moment: here the connection says it.

/** A server that answers its begin with an error, and all else as usual; and how its connection was given back. */
function serverThatRefusesToBegin(code: string, { takesStatements }: { takesStatements: boolean }) {
  const said: string[] = [];
  const released: unknown[] = [];
  const refusal = (why: string) => Object.assign(new pg.DatabaseError('refused', 1, 'error'), { code: why });
  const client = {
    async query(asked: string | { text: string }) {
      const text = typeof asked === 'string' ? asked : asked.text;
      said.push(text.split(' ')[0] ?? '');
      await Bun.sleep(1);
      if (text.startsWith('start transaction')) throw refusal(code);
      if (!takesStatements) throw refusal('25P02'); // the transaction is aborted
      return { command: 'DELETE', rowCount: 1, rows: [] };
    },
    release: (error: unknown) => void released.push(error),
  };
  const primary = { connect: async () => client, timelineOf: () => null, lost() {} } as unknown as Primary;
  const db = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new PostgresDriver(primary),
      createIntrospector: made => new PostgresIntrospector(made),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
  const outcome = db
    .transaction()
    .execute(transaction => transaction.deleteFrom('events').execute())
    .then(
      () => null,
      (error: unknown) => error,
    );
  return { said, released, outcome };
}

test('a server that follows another one has changed nothing, and is not asked again', async () => {
  const { said, released, outcome } = serverThatRefusesToBegin('25006', { takesStatements: false });
  const error = await outcome;
  expect(error).toBeInstanceOf(AtollError);
  expect(error).toMatchObject({ code: 'unavailable', detail: 'database_unavailable' });
  expect(said).toEqual(['start', 'delete']);
  expect(released[0]).toBeInstanceOf(Error);
});

test('where only the begin was given up, nobody can say that nothing was changed', async () => {
  const { said, released, outcome } = serverThatRefusesToBegin('57014', { takesStatements: true });
  expect(isOutcomeUnknown(await outcome)).toBe(true);
  expect(said).toEqual(['start', 'delete']);
  expect(released[0]).toBeInstanceOf(Error);
});
