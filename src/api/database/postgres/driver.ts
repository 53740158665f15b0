import type { CompiledQuery, DatabaseConnection, Driver, QueryResult, TransactionSettings } from 'kysely';
import pg from 'pg';
import { AtollError, assert } from '../../../base/error.ts';
import { statementOf } from '../prepared.ts';
import type { Primary, Timeline } from './primary.ts';

/** How long to ask about a commit whose answer was lost. A restarted server answers within a second or two. */
const outcomeWaitMs = 5_000;
const outcomeRetryMs = 100;
const retryAfterSeconds = 2;
/** A server that ends or starts, or a connection that does. */
const lostCodes = /^(?:08|57P)/;
/** A server that is there and refuses: it is full, or cancelled a statement after its longest time. */
const refusedCodes = /^(?:53300|57014)/;
/** A server that now follows another one: nothing can be changed there. */
const standbyCode = '25006';

/**
 * Errors about the caller's own request, or about two requests at once. What was done in a transaction is undone then,
 * and a single change was not made. Source: PostgreSQL, appendix A.
 */
const askersOwn: Record<string, (cause: unknown) => AtollError> = {
  // unique_violation
  '23505': cause =>
    new AtollError(
      'conflict',
      'What has to be unique was made at the same moment; nothing was changed. Read it again',
      { cause },
    ),
  // deadlock_detected
  '40P01': cause =>
    new AtollError('unavailable', 'Two changes waited for each other; nothing was changed by this one. Try again', {
      retryAfterSeconds: 1,
      cause,
    }),
  // character_not_in_repertoire
  '22021': cause => new AtollError('invalid', 'A text must not hold a NUL character; nothing was changed', { cause }),
};

/** `error_code` of a change that was sent and may or may not have been made. Read it again. */
export const outcomeUnknown = 'database_outcome_unknown';

/** True where the database did not say whether it made a change. */
export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof AtollError && error.detail === outcomeUnknown;
}

/**
 * Kysely's driver on connections of `pg` to the primary. A database that does not answer is `unavailable`, and the
 * error says whether anything can have been changed: a transaction knows its ID from its begin, so that the driver can
 * ask about one whose commit had no answer.
 */
export class PostgresDriver implements Driver {
  readonly #primary: Primary;

  constructor(primary: Primary) {
    this.#primary = primary;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return new Connection(await this.#connect(), this.#primary);
  }

  async beginTransaction(
    connection: DatabaseConnection,
    { isolationLevel, accessMode }: TransactionSettings,
  ): Promise<void> {
    // A backup reads all of its tables as of one moment.
    const modes = [
      ...(isolationLevel === undefined ? [] : [`isolation level ${isolationLevel}`]),
      ...(accessMode === undefined ? [] : [accessMode]),
    ];
    connectionOf(connection).begin(modes.join(', '));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    const asked = await connectionOf(connection).begun();
    try {
      await connectionOf(connection).commit();
    } catch (error) {
      if (!isOutcomeUnknown(error) || !(await this.#wasCommitted(asked, error))) throw error;
    }
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connectionOf(connection).rollback();
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    connectionOf(connection).release();
  }

  async destroy(): Promise<void> {
    await this.#primary.end();
  }

  async #connect(): Promise<pg.PoolClient> {
    try {
      return await this.#primary.connect();
    } catch (cause) {
      throw away(cause, false);
    }
  }

  /**
   * Asks how a transaction ended. Throws `unavailable` where it did not commit; `unanswered` where nobody can tell in
   * time, or another server was promoted meanwhile, where the ID may belong to another transaction.
   */
  async #wasCommitted(asked: Asked, unanswered: unknown): Promise<true> {
    for (const endMs = performance.now() + outcomeWaitMs; performance.now() < endMs; await Bun.sleep(outcomeRetryMs)) {
      const status = await this.#statusOf(asked);
      if (status === 'elsewhere') break;
      if (status === 'committed') return true;
      if (status === 'aborted') throw away(unanswered, false);
    }
    throw unanswered;
  }

  /** Null while the server does not say. */
  async #statusOf({ transactionId, timeline }: Asked): Promise<string | null> {
    const client = await this.#primary.connect().catch(() => null);
    if (!client) return null;
    try {
      if (JSON.stringify(this.#primary.timelineOf(client)) !== JSON.stringify(timeline)) return 'elsewhere';
      const { rows } = await client.query<{ status: string }>('select pg_xact_status($1::xid8) as status', [
        transactionId,
      ]);
      return rows[0]?.status ?? null;
    } catch {
      return null; // the server went away again: the caller tries until its time is over
    } finally {
      client.release();
    }
  }
}

/** A transaction, and the history in which it was made. */
type Asked = { transactionId: string; timeline: Timeline | null };

class Connection implements DatabaseConnection {
  readonly #client: pg.PoolClient;
  readonly #primary: Primary;
  /** ID of the transaction under way, as the server names it; undefined outside of a transaction. */
  #begun: Promise<string> | undefined;
  /** Resolves when the last query is on its way. */
  #lastSent: Promise<unknown> = Promise.resolve();
  #broken: Error | undefined;

  constructor(client: pg.PoolClient, primary: Primary) {
    this.#client = client;
    this.#primary = primary;
  }

  async executeQuery<R>(compiled: CompiledQuery): Promise<QueryResult<R>> {
    const { sql, parameters, query } = compiled;
    const isChange = query.kind !== 'SelectQueryNode';
    const values = [...parameters];
    // A change within a transaction is undone with its connection.
    const mayStay = this.#begun === undefined && isChange;
    const { command, rowCount, rows } = await this.#inTurn(isChange, () =>
      this.#do(mayStay, () =>
        this.#client.query<R & pg.QueryResultRow>({ name: statementOf(compiled), text: sql, values }),
      ),
    ).catch(async error => {
      await this.#begun; // a failed begin is the reason
      throw error;
    });
    const changes = command === 'INSERT' || command === 'UPDATE' || command === 'DELETE' || command === 'MERGE';
    return { ...(changes && { numAffectedRows: BigInt(rowCount ?? 0) }), rows };
  }

  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('results are not streamed');
  }

  /**
   * Sends something once what came before is on its way. A query may go together with the begin of its transaction; a
   * change must not be carried out if the begin fails.
   */
  async #inTurn<T>(isChange: boolean, send: () => Promise<T>): Promise<T> {
    const sent = this.#lastSent.then(async () => {
      if (isChange) await this.#begun;
      return { answer: send() };
    });
    this.#lastSent = sent.catch(() => {});
    return (await sent).answer;
  }

  /**
   * Sends the begin of a transaction without waiting for the answer: the next queries go to the server with it. `modes`
   * as in SQL, e.g. `isolation level repeatable read`; empty: the server's default.
   */
  begin(modes: string): void {
    this.#begun = this.#sendBegin(modes);
    this.#begun.catch(() => {}); // the next query reports it
  }

  async #sendBegin(modes: string): Promise<string> {
    try {
      // Two statements in one message: one trip to the server and back.
      const results = await this.#do(false, () =>
        this.#client.query(`start transaction ${modes}; select pg_current_xact_id()::text as id`),
      );
      const [, { rows = [] } = {}] = results as unknown as { rows?: { id: string }[] }[];
      const id = rows[0]?.id ?? '';
      assert(id !== '', 'a transaction has no ID');
      return id;
    } catch (error) {
      // Nobody may get this connection again: what came after the begin may hold locks, or still run.
      this.#broken ??= error instanceof Error ? error : new Error(String(error));
      throw error;
    }
  }

  /** The facts by which to ask about the transaction under way. Throws where its begin failed. */
  async begun(): Promise<Asked> {
    assert(this.#begun !== undefined, 'no transaction is under way');
    return { transactionId: await this.#begun, timeline: this.#primary.timelineOf(this.#client) };
  }

  async commit(): Promise<void> {
    const { command } = await this.#do(true, () => this.#client.query('commit'));
    this.#begun = undefined;
    // A transaction in which a statement failed can't be committed; the server shows that by answering what it did
    // instead.
    if (command === 'ROLLBACK') throw new Error('the transaction was rolled back: a statement in it had failed');
  }

  async rollback(): Promise<void> {
    this.#begun = undefined;
    // If the connection is gone, the server rolls back by itself.
    if (this.#broken === undefined) await this.#do(false, () => this.#client.query('rollback'));
  }

  /** Gives the connection back to the pool, or ends it where it is of no more use. */
  release(): void {
    this.#client.release(this.#broken);
  }

  async #do<T>(mayStay: boolean, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const code = error instanceof pg.DatabaseError ? (error.code ?? '') : undefined;
      if (code !== undefined && refusedCodes.test(code)) throw away(error, false);
      if (code !== undefined && code in askersOwn) throw askersOwn[code]?.(error);
      if (code !== undefined && code !== standbyCode && !lostCodes.test(code)) throw error;
      this.#broken = error instanceof Error ? error : new Error(String(error));
      this.#primary.lost(this.#client);
      throw away(error, mayStay && code !== standbyCode);
    }
  }
}

function connectionOf(connection: DatabaseConnection): Connection {
  assert(connection instanceof Connection, 'a connection of another driver');
  return connection;
}

function away(cause: unknown, mayHaveChanged: boolean): AtollError {
  return mayHaveChanged
    ? new AtollError(
        'unavailable',
        'The database went away while the change was made: it was made or it was not; read it again',
        { mayHaveChanged: true, detail: outcomeUnknown, cause },
      )
    : new AtollError('unavailable', 'The database does not answer; nothing was changed', {
        retryAfterSeconds,
        detail: 'database_unavailable',
        cause,
      });
}
