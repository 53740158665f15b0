import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  type QueryResult,
  type SelectModifierNode,
  SqliteQueryCompiler,
  type TransactionSettings,
} from 'kysely';
import { AtollError } from '../../../src/base/error.ts';
import { outcomeUnknown } from '../../../src/api/database/postgres/driver.ts';
import { connectSqlite } from '../../../src/api/database/sqlite/connect.ts';
import type { Tables } from '../../../src/api/database/schema.ts';
import { migrate } from '../../../src/api/database/migrate.ts';

/** A database shared by all, like PostgreSQL: each transaction excludes all others, so that no row has to be locked. */
class Lockless extends SqliteQueryCompiler {
  protected override visitSelectModifier(node: SelectModifierNode): void {
    if (node.modifier !== 'ForUpdate' && node.modifier !== 'ForShare') super.visitSelectModifier(node);
  }
}

/** Reports itself as PostgreSQL; but there is only one connection, which one user has at a time. */
class OneConnection extends PostgresAdapter {
  override get supportsMultipleConnections(): boolean {
    return false;
  }
}

/** A step of a database user: it takes a connection, commits, or changes something without a transaction. */
export type DatabaseStep = 'connect' | 'commit' | 'change';
/** What fails in it: nothing, all of it, or only its answer. */
export type DatabaseFault = 'none' | 'refused' | 'unanswered';

/** The current fault, for the process whose turn it is. */
type Decide = (step: DatabaseStep) => DatabaseFault;

const lost = (mayHaveChanged: boolean) =>
  new AtollError('unavailable', 'the database does not answer', {
    mayHaveChanged,
    detail: mayHaveChanged ? outcomeUnknown : 'database_unavailable',
  });

/** Fails like the driver of PostgreSQL when its server goes away: src/api/database/postgres/driver.ts. */
async function faulty<T>(fault: DatabaseFault, mayStay: boolean, work: () => Promise<T>): Promise<T> {
  if (fault === 'refused') throw lost(mayStay);
  const result = await work();
  if (fault === 'unanswered') throw lost(true);
  return result;
}

class FaultyConnection implements DatabaseConnection {
  readonly #inner: DatabaseConnection;
  readonly #decide: Decide;
  readonly #isRefused: boolean;
  inTransaction = false;

  constructor(inner: DatabaseConnection, decide: Decide, isRefused: boolean) {
    this.#inner = inner;
    this.#decide = decide;
    this.#isRefused = isRefused;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.#isRefused) throw lost(false);
    const isChange = !this.inTransaction && /^(insert|update|delete)/.test(query.sql);
    return faulty(isChange ? this.#decide('change') : 'none', true, () => this.#inner.executeQuery<R>(query));
  }

  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('results are not streamed');
  }
}

class FaultyDriver implements Driver {
  readonly #inner: Driver;
  readonly #decide: Decide;

  constructor(inner: Driver, decide: Decide) {
    this.#inner = inner;
    this.#decide = decide;
  }

  init = () => this.#inner.init();
  destroy = () => this.#inner.destroy();

  /** A refused connection fails at its first use: Kysely would keep its lock for one that was never obtained. */
  async acquireConnection(): Promise<DatabaseConnection> {
    const isRefused = this.#decide('connect') !== 'none';
    return new FaultyConnection(await this.#inner.acquireConnection(), this.#decide, isRefused);
  }

  async beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    await this.#inner.beginTransaction(connection, settings);
    if (connection instanceof FaultyConnection) connection.inTransaction = true;
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    // It asks about a commit that was not answered: only if that fails too does nobody know.
    await faulty(this.#decide('commit'), false, () => this.#inner.commitTransaction(connection));
  }

  rollbackTransaction = (connection: DatabaseConnection) => this.#inner.rollbackTransaction(connection);
  releaseConnection = (connection: DatabaseConnection) => this.#inner.releaseConnection(connection);
}

/**
 * A database that several control processes share, within this process and without waiting for anything. `decide` says
 * what fails; nothing if it is not set.
 */
export type SharedDatabase = AsyncDisposable & {
  db: Kysely<Tables>;
  decide?: Decide | undefined;
  empty(): Promise<void>;
};

/** Makes one. */
export async function sharedDatabase(): Promise<SharedDatabase> {
  const { dialect } = connectSqlite(':memory:');
  // Not closed: both have the same database.
  await migrate(new Kysely<Tables>({ dialect }));
  const db = new Kysely<Tables>({
    dialect: {
      ...dialect,
      createAdapter: () => new OneConnection(),
      createQueryCompiler: () => new Lockless(),
      createDriver: () => new FaultyDriver(dialect.createDriver(), step => shared.decide?.(step) ?? 'none'),
    },
  });
  const tables = [
    'blob_refs',
    'blobs',
    'sandboxes',
    'past_sandboxes',
    'sandbox_homes',
    'events',
    'cluster_nodes',
    'nodes',
  ] as const;
  const shared: SharedDatabase = {
    db,
    async empty() {
      shared.decide = undefined;
      for (const table of [...tables, 'replicas'] as const) await db.deleteFrom(table).execute();
    },
    async [Symbol.asyncDispose]() {
      await db.destroy();
    },
  };
  return shared;
}
