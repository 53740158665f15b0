import { afterAll, beforeAll, describe, setDefaultTimeout } from 'bun:test';
import type { StoreLocation } from '../../src/api/database/db.ts';
import { testUnless } from '../support/skip.ts';
import { SharedDatabases, postgresPrograms, withoutPostgres } from './postgres.ts';

/** Guards against a test that hangs; on a busy machine, databases are slow. */
const testTimeoutMs = 120_000;

export type Database = {
  name: 'SQLite' | 'PostgreSQL';
  /** A new one with today's schema for each test; undefined: a file in the platform's own directory. */
  location(): Promise<StoreLocation | undefined>;
  /** The same without any schema. */
  emptyLocation(): Promise<StoreLocation | undefined>;
};

/** Runs the tests of `define` on SQLite, and on new databases of a PostgreSQL. */
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
    let databases: SharedDatabases | undefined;
    beforeAll(async () => {
      databases = await SharedDatabases.open(programs);
    }, testTimeoutMs);
    afterAll(async () => {
      await databases?.[Symbol.asyncDispose]();
    }, testTimeoutMs);
    define({
      name: 'PostgreSQL',
      location: async () => databases?.newStore(),
      emptyLocation: async () => databases?.newDatabase(),
    });
  });
}
