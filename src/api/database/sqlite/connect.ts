import { Database } from 'bun:sqlite';
import type { SQLQueryBindings, Statement } from 'bun:sqlite';
import { chmodSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { AtollError, messageOf, systemCodeOf } from '../../../base/error.ts';
import { CompiledQuery, SqliteAdapter, SqliteDriver, SqliteIntrospector, SqliteQueryCompiler } from 'kysely';
import type { DatabaseConnection, Dialect, SqliteDatabase, SqliteStatement } from 'kysely';
import { checkpointsOf } from './checkpoints.ts';
import { logFile } from './log-file.ts';

/** Prepared statements to keep; the platform's own queries are far fewer. */
const statementsMax = 512;
/** How long a write waits for another process (the command line, a backup) to finish its own. */
const busyTimeoutMs = 5_000;
/**
 * Pages of the log after which the writer itself copies them into the database and waits for the disk, 40 MiB: usually
 * the thread has done most of it long before.
 */
const logPagesMax = 10_000;

/** A connection to an SQLite database. */
type SqliteConnection = {
  dialect: Dialect;
  /** True once after each change that another connection, of this or another process, made to the database. */
  changedElsewhere(): boolean;
  /** Call it, and wait for it, before closing the connection. */
  endWriting(): Promise<void>;
  /** Resolves when everything committed before the call is on the disk. Callers share a write. */
  flushed(): Promise<void>;
};

/**
 * Kysely's SQLite dialect on `bun:sqlite`. `path` is a file, made with mode 0600, or `:memory:`. WAL with
 * `synchronous=NORMAL`: commits survive the death of the process at any moment, and a loss of power once `flushed` has
 * resolved. If each commit waited for the disk, creates would wait too, although a loss of power ends their sandboxes
 * anyway.
 */
export function connectSqlite(path: string): SqliteConnection {
  try {
    return connect(path);
  } catch (error) {
    throw failureOf(error, ` at ${path}`);
  }
}

function connect(path: string): SqliteConnection {
  const database = new Database(path, { create: true, strict: true });
  if (path !== ':memory:') chmodSync(path, 0o600);
  database.run(`pragma busy_timeout = ${busyTimeoutMs}`);
  database.run('pragma journal_mode = wal');
  database.run('pragma synchronous = normal');
  database.run('pragma foreign_keys = on');
  database.run(`pragma wal_autocheckpoint = ${logPagesMax}`);

  const checkpoints = path === ':memory:' ? undefined : checkpointsOf(path);
  const log = path === ':memory:' ? undefined : logFile(`${path}-wal`, () => emptyLog(database));
  let writes = 0;
  const adapter = statementCache(database, () => {
    writes++;
    checkpoints?.written();
  });
  const dataVersion = database.query<{ data_version: number }, []>('pragma data_version');
  const versionOf = () => dataVersion.get()?.data_version;
  let seenVersion = versionOf();
  const changes = database.query<{ count: number }, []>('select total_changes() as count');
  // A commit is a separate statement, except where a single statement that answers rows is the whole transaction.
  const stateOf = () => withCodes(() => `${writes} ${changes.get()?.count} ${versionOf()}`);
  return {
    dialect: {
      createAdapter: () => new TransactionalDdlAdapter(),
      createDriver: () => new ImmediateSqliteDriver({ database: adapter, inTransaction: () => database.inTransaction }),
      createIntrospector: db => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
    changedElsewhere() {
      const version = versionOf();
      if (version === seenVersion) return false;
      seenVersion = version;
      return true;
    },
    async endWriting() {
      await checkpoints?.end();
      await log?.close();
    },
    flushed: log ? shared(whereChanged(stateOf, () => log.writeOut())) : async () => {},
  };
}

/**
 * Runs `work` for all callers: never twice at once, and each caller gets a run that began after its call. Callers that
 * come meanwhile share the next run.
 */
function shared(work: () => Promise<void>): () => Promise<void> {
  let current = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    next ??= current
      .catch(() => {})
      .then(() => {
        next = undefined;
        current = work();
        return current;
      });
    return next;
  };
}

/** Runs `work` only if `state` has changed since the last time, so that an unused disk may rest. */
function whereChanged(state: () => string, work: () => Promise<void>): () => Promise<void> {
  let done = '';
  return async () => {
    const now = state();
    if (now === done) return;
    await work();
    done = now;
  };
}

/** Copies the whole log into the database, and syncs that to the disk. Errors: `unavailable`, where others use it. */
function emptyLog(database: Database): void {
  const { busy } = withCodes(() => database.query<{ busy: number }, []>('pragma wal_checkpoint(truncate)').get()) ?? {};
  if (busy !== 0)
    throw new AtollError('unavailable', 'the database is in use, and what it has in its log not on the disk');
}

/** Writes a copy of a database as of one moment to a new file, while others go on using it. */
export function vacuumInto(path: string, copy: string): void {
  withCodes(() => {
    using database = new Database(path, { readwrite: true, strict: true });
    database.run(`pragma busy_timeout = ${busyTimeoutMs}`);
    database.run('vacuum into ?', [copy]);
  });
}

/**
 * Every transaction here writes. Taking the write lock at its begin makes it wait for a busy database; a lock requested
 * after a read fails at once when another process wrote in between.
 */
class ImmediateSqliteDriver extends SqliteDriver {
  readonly #inTransaction: () => boolean;

  constructor({ database, inTransaction }: { database: SqliteDatabase; inTransaction: () => boolean }) {
    super({ database });
    this.#inTransaction = inTransaction;
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  /** After a full disk and the like, SQLite rolls back by itself; rolling back again would hide the reason. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#inTransaction()) await super.rollbackTransaction(connection);
  }
}

/**
 * SQLite can roll back schema changes; this makes Kysely do so, and an interrupted migration leaves nothing half made.
 */
class TransactionalDdlAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

function statementCache(database: Database, onWrite: () => void): SqliteDatabase {
  const statements = new LRUCache<string, { statement: Statement; wrapped: SqliteStatement }>({
    max: statementsMax,
    dispose: ({ statement }) => statement.finalize(),
  });
  return {
    close() {
      statements.clear();
      database.close();
    },
    prepare(sql) {
      const known = statements.get(sql);
      if (known) return known.wrapped;
      const statement = database.prepare(sql);
      const wrapped = wrap(statement, onWrite);
      statements.set(sql, { statement, wrapped });
      return wrapped;
    },
  };
}

function wrap(statement: Statement, onWrite: () => void): SqliteStatement {
  const bind = (parameters: ReadonlyArray<unknown>) => parameters as SQLQueryBindings[];
  return {
    reader: statement.columnNames.length > 0,
    all: parameters => withCodes(() => statement.all(...bind(parameters))),
    run(parameters) {
      const result = withCodes(() => statement.run(...bind(parameters)));
      onWrite();
      return result;
    },
    iterate: parameters => withCodes(() => statement.iterate(...bind(parameters)) as IterableIterator<unknown>),
  };
}

/** A failure of the world is not a defect: the caller learns what it was. */
function withCodes<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw failureOf(error);
  }
}

/**
 * The meaning of an SQLite failure for the caller. Source: https://www.sqlite.org/rescode.html. Other errors are
 * answered unchanged. `where`: the place, for callers who may know it.
 */
export function failureOf(error: unknown, where = ''): unknown {
  if (/^SQLITE_CONSTRAINT_(?:UNIQUE|PRIMARYKEY)/.test(systemCodeOf(error)))
    return new AtollError(
      'conflict',
      'What has to be unique was made at the same moment; nothing was changed. Read it again',
      { cause: error },
    );
  const [, name] =
    /^SQLITE_(FULL|IOERR_SHMSIZE|CORRUPT|NOTADB|IOERR|BUSY|READONLY|CANTOPEN)/.exec(systemCodeOf(error)) ?? [];
  if (name === undefined) return error;
  const options = { cause: error, fields: { sqlite: systemCodeOf(error) } };
  // Its file of locks could not grow.
  if (name === 'FULL' || name === 'IOERR_SHMSIZE')
    return new AtollError(
      'no_space',
      'The disk of the platform is full: nothing was changed. Delete what is not needed, or tell the operator.',
      options,
    );
  if (name === 'BUSY')
    return new AtollError('unavailable', 'The database is busy with another change: try again.', {
      ...options,
      retryAfterSeconds: 1,
    });
  if (name === 'CORRUPT' || name === 'NOTADB')
    return new AtollError(
      'internal',
      `The database of the platform is damaged (${messageOf(error)}): stop it, and put a whole copy in its place ` +
        `or use \`atoll restore\`.`,
      options,
    );
  return new AtollError(
    'unavailable',
    `The database of the platform${where} can't be read or written (${messageOf(error)}); nothing was changed.`,
    options,
  );
}
