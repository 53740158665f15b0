import pg from 'pg';
import { credentialChannel } from './migrations/0002-tell-credential-changes.ts';

const reconnectMs = 1_000;

/**
 * Hears of changes to keys and teams, whoever makes them. Without connection every answer is
 * "changed": nothing is kept that might be revoked.
 */
export class CredentialWatch {
  readonly #url: string;
  #client: pg.Client | null = null;
  #listening = false;
  #changed = true;
  #closed = false;

  constructor(url: string) {
    this.#url = url;
    void this.#connect();
  }

  /** True once after each change. */
  changedElsewhere(): boolean {
    const changed = this.#changed;
    if (this.#listening) this.#changed = false;
    return changed;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client?.end();
  }

  async #connect(): Promise<void> {
    if (this.#closed) return;
    const client = new pg.Client({ connectionString: this.#url, application_name: 'atoll watch', keepAlive: true });
    this.#client = client;
    const lost = () => {
      if (this.#client !== client) return;
      this.#client = null;
      this.#listening = false;
      this.#changed = true;
      if (!this.#closed) setTimeout(() => void this.#connect(), reconnectMs).unref();
    };
    client.on('error', lost);
    client.on('end', lost);
    client.on('notification', () => (this.#changed = true));
    try {
      await client.connect();
      await client.query(`listen ${credentialChannel}`);
      this.#listening = true;
    } catch {
      await client.end().catch(() => {});
      lost();
    }
  }
}
