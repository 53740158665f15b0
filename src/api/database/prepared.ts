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
): (db: Db, params: Params, words?: readonly Word[]) => Promise<Row[]> {
  const compiled = new Map<string, CompiledQuery<Row> & Statement>();
  return async (db, params, words = []) => {
    const values = params as Record<string, unknown>;
    const key = [kindOf(db), ...words].join(' ');
    const query = compiled.get(key) ?? named(build(db, placeholder, words).compile());
    compiled.set(key, query);
    const parameters = query.parameters.map(value => (value instanceof Placeholder ? values[value.name] : value));
    return (await db.executeQuery<Row>({ ...query, parameters })).rows;
  };
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
