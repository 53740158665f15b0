import { sql } from 'kysely';
import type { Compilable, CompiledQuery, Expression } from 'kysely';
import { sha256Hex } from '../../base/crypto/secret.ts';
import { assert } from '../../base/error.ts';
import { kindOf } from './db.ts';
import type { Db } from './db.ts';

/** The place of a value in a query. */
export type ParameterOf<Params> = <Name extends keyof Params & string>(name: Name) => Expression<Params[Name]>;

/** Stands among a query's values for one that is given when it runs. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/**
 * A query that is written as any other, with a parameter for each value that differs from run to run. It is put into
 * SQL once for each kind of database: for the queries of every create and kill, of which that takes most of the time.
 * PostgreSQL, too, reads and plans it once for each connection, for which it has to name its columns: what `*` stands
 * for changes when another release adds one. `words` are of a closed list (states, as an example), and are written
 * into the query: each list of them makes a query of its own.
 */
export function prepared<Params extends object, Row = unknown, Word extends string = never>(
  build: (db: Db, parameter: ParameterOf<Params>, words: readonly Word[]) => Compilable<Row>,
): Prepared<Params, Row, Word> {
  const compiled = new Map<string, CompiledQuery<Row> & Statement>();
  const queryOf = (db: Db, params: Params, words: readonly Word[] = []): CompiledQuery<Row> => {
    const values = params as Record<string, unknown>;
    const key = [kindOf(db), ...words].join(' ');
    const query = compiled.get(key) ?? named(build(db, placeholder, words).compile());
    compiled.set(key, query);
    const parameters = query.parameters.map(value => (value instanceof Placeholder ? values[value.name] : value));
    return { ...query, parameters };
  };
  const run = async (db: Db, params: Params, words?: readonly Word[]) =>
    (await db.executeQuery(queryOf(db, params, words))).rows;
  return Object.assign(run, { queryOf });
}

/** A query that is kept, to be run by itself, or with others by `together`. */
type Prepared<Params, Row, Word> = {
  (db: Db, params: Params, words?: readonly Word[]): Promise<Row[]>;
  queryOf(db: Db, params: Params, words?: readonly Word[]): CompiledQuery<Row>;
};

/**
 * Runs queries that do not need each other's answers, one after the other, on one connection: for PostgreSQL they are
 * one way to the server and back. Throws the error of the first one that fails; outside of a transaction the others
 * count all the same.
 */
export async function together<Rows extends unknown[]>(
  db: Db,
  queries: readonly [...{ [Index in keyof Rows]: CompiledQuery<Rows[Index]> }],
): Promise<{ [Index in keyof Rows]: Rows[Index][] }> {
  // All are waited for: a connection is not given back with an answer under way.
  const outcomes = await db
    .getExecutor()
    .provideConnection(connection => Promise.allSettled(queries.map(query => connection.executeQuery(query))));
  return outcomes.map(outcome => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value.rows;
  }) as { [Index in keyof Rows]: Rows[Index][] };
}

/** What a query is called where a database keeps it. */
type Statement = { readonly statement: string };

/** The name of a query that is run again and again; undefined for all others. */
export const statementOf = (query: CompiledQuery): string | undefined => (query as Partial<Statement>).statement;

/** Characters of a digest that tell queries apart. */
const nameCharacters = 32;
const everyColumn = /(?:select|returning|\.) ?\*/i;

function named<Row>(query: CompiledQuery<Row>): CompiledQuery<Row> & Statement {
  assert(!everyColumn.test(query.sql), `a query that is kept names its columns: ${query.sql}`);
  return { ...query, statement: sha256Hex(query.sql).slice(0, nameCharacters) };
}

const placeholder = <T>(name: string) => sql<T>`${new Placeholder(name)}`;
