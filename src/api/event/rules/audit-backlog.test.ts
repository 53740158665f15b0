import { afterAll, beforeEach, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import { openStore } from '../../database/database.ts';
import type { Db } from '../../database/db.ts';
import type { AuditRecord } from '../record.ts';
import { listAudit } from '../store/audit.ts';
import { AuditBacklog } from './audit-backlog.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
beforeEach(async () => void (await db.deleteFrom('audit_log').execute()));

const entry = (number: number): AuditRecord => ({
  entryId: `entry-${number}`,
  atUs: number,
  operation: 'createSandbox',
  target: 'sandbox:s',
  actorKind: 'none',
  actorId: null,
  teamId: null,
  address: '192.0.2.1',
  status: 201,
  before: null,
  after: null,
});

/** A database on which everything fails with `error`. */
const failing = (error: Error): Db =>
  new Proxy(db, {
    get() {
      throw error;
    },
  });
const away = failing(new AtollError('unavailable', 'the database is away'));
const written = async () => (await listAudit(db, {}, { limit: 10_000 })).map(({ entryId }) => entryId).toReversed();

function backlog() {
  const logged: string[] = [];
  return { logged, backlog: new AuditBacklog(createLog('error', line => logged.push(line))) };
}

test('an entry is written at once, or when the database is back, in order', async () => {
  const { backlog: entries, logged } = backlog();
  await entries.write(db, entry(1));
  expect(await written()).toEqual(['entry-1']);
  for (const number of [2, 3]) await entries.write(away, entry(number));
  await expect(entries.flush(away)).rejects.toThrow('the database is away');
  await entries.flush(db);
  expect(await written()).toEqual(['entry-1', 'entry-2', 'entry-3']);
  // Written entries no longer wait.
  await entries.flush(away);
  expect(logged).toEqual([]);
});

test('a defect is not taken for a database that is away', async () => {
  const { backlog: entries } = backlog();
  await expect(entries.write(failing(new TypeError('a bug')), entry(1))).rejects.toThrow('a bug');
  await entries.flush(away);
});

test('a thousand entries wait, and further ones go to the log', async () => {
  const { backlog: entries, logged } = backlog();
  for (let number = 1; number <= 1000; number++) await entries.write(away, entry(number));
  expect(logged).toEqual([]);
  await entries.write(away, entry(1001));
  expect(logged).toEqual([expect.stringContaining('entry-1001')]);
  expect(logged[0]).toContain('the database is away');
  await entries.flush(db);
  expect(await written()).toHaveLength(1000);
});
