import { sql } from 'kysely';
import type { CompiledQuery, Expression } from 'kysely';
import { sha256Hex } from '../../base/crypto/secret.ts';
import { assert } from '../../base/error.ts';
import { kindOf } from './db.ts';
import type { Db } from './db.ts';

/** Stands for a value in a query. */
export type ParameterOf<Params> = <Name extends keyof Params & string>(name: Name) => Expression<Params[Name]>;

/** Stand for the values of a list. */
type EachOf<Params> = <Name extends keyof Params & string>(
  name: Name,
) => Expression<Params[Name] extends readonly (infer Value)[] ? Value : never>[];

/** Stands among a query's values for one that is given when it runs; in a list, for the one at `index`. */
class Placeholder {
  readonly name: string;
  readonly index: number;

  constructor(name: string, index = 0) {
    this.name = name;
    this.index = index;
  }

  valueIn(params: Readonly<Record<string, unknown>>): unknown {
    const value = params[this.name];
    return Array.isArray(value) ? value[Math.min(this.index, value.length - 1)] : value;
  }
}

/**
 * A query written like any other, with a parameter for each value that differs from run to run. It is compiled to SQL
 * once for each kind of database: for the queries of every create and kill, compiling takes most of the time.
 * PostgreSQL, too, parses and plans it once for each connection. For that it has to name its columns: the meaning of
 * `*` changes when another release adds a column. `words` come from a closed list (e.g. states) and are written into
 * the query: each list of them makes a separate query.
 *
 * `parameter.each` stands for a list with at least one value. The last value is repeated up to a power of two, so that
 * all lengths make few queries: a repeated value must not change the meaning, as after `in`.
 */
export function prepared<Params extends object, Row = unknown, Word extends string = never>(
  build: (db: Db, parameter: PlacesOf<Params>, words: readonly Word[]) => { compile(db: Db): CompiledQuery<Row> },
): Prepared<Params, Row, Word> {
  const compiled = new Map<string, CompiledQuery<Row> & Statement>();
  const queryOf = (db: Db, params: Params, words: readonly Word[] = []): CompiledQuery<Row> => {
    const values = params as Record<string, unknown>;
    const lengths = Object.values(values).flatMap(value => (Array.isArray(value) ? [placesFor(value)] : []));
    const key = [kindOf(db), ...lengths, ...words].join(' ');
    const query = compiled.get(key) ?? named(build(db, placesIn(values), words).compile(db));
    compiled.set(key, query);
    const parameters = query.parameters.map(value => (value instanceof Placeholder ? value.valueIn(values) : value));
    return { ...query, parameters };
  };
  const run = async (db: Db, params: Params, words?: readonly Word[]) =>
    (await db.executeQuery(queryOf(db, params, words))).rows;
  return Object.assign(run, { queryOf });
}

type PlacesOf<Params> = ParameterOf<Params> & { each: EachOf<Params> };

/** A kept query, run alone or with others by `together`. */
type Prepared<Params, Row, Word> = {
  (db: Db, params: Params, words?: readonly Word[]): Promise<Row[]>;
  queryOf(db: Db, params: Params, words?: readonly Word[]): CompiledQuery<Row>;
};

/**
 * Runs queries that do not need each other's answers, one after the other, on one connection: for PostgreSQL they are
 * one trip to the server and back. Throws the error of the first one that fails; outside of a transaction the others
 * take effect all the same.
 */
export async function together<Rows extends unknown[]>(
  db: Db,
  queries: readonly [...{ [Index in keyof Rows]: CompiledQuery<Rows[Index]> }],
): Promise<{ [Index in keyof Rows]: Rows[Index][] }> {
  // Waits for all: a connection must not be given back with an answer under way.
  const outcomes = await db
    .getExecutor()
    .provideConnection(connection => Promise.allSettled(queries.map(query => connection.executeQuery(query))));
  return outcomes.map(outcome => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value.rows;
  }) as { [Index in keyof Rows]: Rows[Index][] };
}

/** The name under which a database keeps a query. */
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

function placesIn<Params>(values: Readonly<Record<string, unknown>>): PlacesOf<Params> {
  const place = <T>(name: string, index?: number) => sql<T>`${new Placeholder(name, index)}`;
  const each = <T>(name: string) => {
    const list = values[name];
    return Array.from({ length: Array.isArray(list) ? placesFor(list) : 1 }, (_, index) => place<T>(name, index));
  };
  return Object.assign(<T>(name: string) => place<T>(name), { each });
}

function placesFor(list: readonly unknown[]): number {
  assert(list.length > 0, 'a query that is kept takes no empty list');
  return 2 ** Math.ceil(Math.log2(list.length));
}
