import { AtollError, messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { insertAudit } from '../store/audit.ts';
import type { Db } from '../../database/db.ts';
import type { AuditRecord } from '../record.ts';

/** Entries that may wait for a database. Further ones are written to the log and not kept. */
const waitingMax = 1_000;
/** How often this runs, milliseconds. */
export const auditBacklogIntervalMs = 2_000;

/** Audit entries of changes whose database went away before the entries could be written. */
export class AuditBacklog {
  readonly #log: Log;
  #waiting: AuditRecord[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  /** Writes an entry, now or when the database is back. A change that was made must not be answered as a failure. */
  async write(db: Db, entry: AuditRecord): Promise<void> {
    try {
      await insertAudit(db, entry);
    } catch (error) {
      if (!(error instanceof AtollError)) throw error;
      if (this.#waiting.length < waitingMax) this.#waiting.push(entry);
      else this.#log.error('an audit entry could not be kept', { ...entry, error: messageOf(error) });
    }
  }

  /** Writes the waiting entries. Throws where the database does not take them; they go on waiting then. */
  async flush(db: Db): Promise<void> {
    for (let entry = this.#waiting[0]; entry !== undefined; entry = this.#waiting[0]) {
      await insertAudit(db, entry);
      this.#waiting.shift();
    }
  }
}
