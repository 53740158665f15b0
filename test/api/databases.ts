import { afterAll, beforeAll, describe, setDefaultTimeout } from 'bun:test';
import type { StoreLocation } from '../../src/api/database/db.ts';
import { testUnless } from '../support/skip.ts';
import { PostgresCluster, postgresPrograms, withoutPostgres } from './postgres.ts';

/** Against a test that hangs; on a busy machine, databases are slow. */
const testTimeoutMs = 120_000;

export type Database = {
  name: 'SQLite' | 'PostgreSQL';
  /** A fresh one with today's schema for each test; undefined: a file of the platform's own directory. */
  location(): Promise<StoreLocation | undefined>;
  /** The same without any schema. */
  emptyLocation(): Promise<StoreLocation | undefined>;
};

/** Runs the tests that `define` defines on SQLite and on a PostgreSQL that lives as long as they do. */
export function onEachDatabase(define: (database: Database) => void): void {
  setDefaultTimeout(testTimeoutMs);
  const file = async () => undefined;
  describe('on SQLite', () => define({ name: 'SQLite', location: file, emptyLocation: file }));

  const programs = postgresPrograms();
  if (programs === null) {
    testUnless(withoutPostgres())('on PostgreSQL', () => {});
    return;
  }
  describe('on PostgreSQL', () => {
    let cluster: PostgresCluster | undefined;
    beforeAll(async () => {
      cluster = await PostgresCluster.start(programs);
    }, testTimeoutMs);
    afterAll(async () => {
      await cluster?.[Symbol.asyncDispose]();
    }, testTimeoutMs);
    define({
      name: 'PostgreSQL',
      location: async () => cluster?.newStore(),
      emptyLocation: async () => cluster?.newDatabase(),
    });
  });
}
