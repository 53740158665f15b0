import { sql } from 'kysely';
import type { Compilable, CompiledQuery, Expression } from 'kysely';
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
 * `words` are of a closed list (states, as an example), and are written into the query: each list of them makes a query
 * of its own.
 */
export function prepared<Params extends object, Row = unknown, Word extends string = never>(
  build: (db: Db, parameter: ParameterOf<Params>, words: readonly Word[]) => Compilable<Row>,
): (db: Db, params: Params, words?: readonly Word[]) => Promise<Row[]> {
  const compiled = new Map<string, CompiledQuery<Row>>();
  return async (db, params, words = []) => {
    const values = params as Record<string, unknown>;
    const key = [kindOf(db), ...words].join(' ');
    const query = compiled.get(key) ?? build(db, placeholder, words).compile();
    compiled.set(key, query);
    const parameters = query.parameters.map(value => (value instanceof Placeholder ? values[value.name] : value));
    return (await db.executeQuery<Row>({ ...query, parameters })).rows;
  };
}

const placeholder = <T>(name: string) => sql<T>`${new Placeholder(name)}`;
