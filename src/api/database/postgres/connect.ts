import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import type { Dialect } from 'kysely';
import pg from 'pg';
import { PostgresDriver } from './driver.ts';
import { Primary, type Timeline } from './primary.ts';

/** The most connections of one process. */
const connectionsMax = 10;
/** No query of the platform takes longer; for one that does, an error is better than a held lock. */
const statementTimeoutMs = 30_000;
/** For a server that does not even report a timeout: the network in between is gone. */
const answerTimeoutMs = statementTimeoutMs + 5_000;
const connectTimeoutMs = 10_000;

/** The dialect, and the newest history that its connections have reached; null before the first one. */
type PostgresConnection = { dialect: Dialect; newestTimeline(): Timeline | null };

/**
 * Kysely's PostgreSQL dialect on `pg`. Bun's own client is as fast, but always gives 64-bit integers as text and cannot
 * `LISTEN`; `pg` is what Kysely's dialect is made and tested for. `url` may name several servers, one of which accepts
 * changes.
 */
export function connectPostgres(url: string): PostgresConnection {
  const primary = new Primary(url, {
    max: connectionsMax,
    statement_timeout: statementTimeoutMs,
    query_timeout: answerTimeoutMs,
    keepAlive: true,
    // Queries that do not depend on an answer go to the server before it has come.
    pipeline: true,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: 'atoll',
    types: { getTypeParser: typeParser },
  });
  const dialect: Dialect = {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new PostgresDriver(primary),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
  return { dialect, newestTimeline: () => primary.newest };
}

/** 64-bit integers as numbers: no value of the schema passes 2^53. */
const typeParser: typeof pg.types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text');
