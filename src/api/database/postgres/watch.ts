import type pg from 'pg';
import { credentialChannel } from '../migrations/first/credential-changes.ts';
import { sandboxChannel } from '../migrations/first/replicas.ts';
import { connectToPrimary, isLeft, type Timeline } from './primary.ts';

const reconnectMs = 1_000;
/** After this silence the server is asked whether it is there, and has as long for its answer, ms. */
const silenceMs = 5_000;
/** Changes that come within this time are reported together, ms. */
const gatherMs = 5;

/** Called with the IDs of sandboxes whose rows anybody has changed; null where it may be any. */
export type SandboxListener = (sandboxIds: ReadonlySet<string> | null) => void;

/**
 * Watches for changes of keys, teams and sandboxes, whoever makes them. Without a connection every answer is "changed",
 * so that nothing is kept that might be revoked. The same holds while its connection is on another history of the
 * database than `newest`, that of the reading connections: changes made there are not reported here.
 */
export class ChangeWatch {
  readonly #url: string;
  readonly #newest: () => Timeline | null;
  #client: pg.Client | null = null;
  /** The history that the connection is on. */
  #timeline: Timeline | null = null;
  /** The history whose changes were reported so far. */
  #known: Timeline | null = null;
  #listening = false;
  #credentialsChanged = true;
  #closed = false;
  #sandboxListener: SandboxListener | null = null;
  #sandboxes = new Set<string>();

  constructor(url: string, newest: () => Timeline | null) {
    this.#url = url;
    this.#newest = newest;
    void this.#connect();
  }

  /** True once after each change of keys and teams. */
  changedElsewhere(): boolean {
    this.#notice();
    const changed = this.#credentialsChanged;
    if (this.#listening && isSame(this.#timeline, this.#known)) this.#credentialsChanged = false;
    return changed;
  }

  /** Notifies `listener` of changed sandboxes until the returned function is called. One listener at a time. */
  onSandboxes(listener: SandboxListener): () => void {
    this.#sandboxListener = listener;
    return () => {
      if (this.#sandboxListener === listener) this.#sandboxListener = null;
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#sandboxListener = null;
    await this.#client?.end();
  }

  /** On another history anything may be different, and a server that was abandoned for it reports nothing of it. */
  #notice(): void {
    const newest = this.#newest();
    if (newest === null || isSame(newest, this.#known)) return;
    this.#known = newest;
    this.#credentialsChanged = true;
    this.#sandboxListener?.(null);
    if (!this.#timeline || !isLeft(this.#timeline, newest)) return;
    this.#listening = false; // its end comes later
    void this.#client?.end().catch(() => {});
  }

  #heard({ channel, payload = '' }: pg.Notification): void {
    if (channel === credentialChannel) this.#credentialsChanged = true;
    else {
      if (this.#sandboxes.size === 0) setTimeout(() => this.#notify(), gatherMs);
      this.#sandboxes.add(payload);
    }
  }

  #notify(): void {
    const changed = this.#sandboxes;
    this.#sandboxes = new Set();
    this.#sandboxListener?.(changed);
  }

  async #connect(): Promise<void> {
    if (this.#closed) return;
    let asking: Timer | undefined;
    let isOver = false;
    const over = () => {
      if (isOver) return;
      isOver = true;
      clearInterval(asking);
      this.#client = null;
      this.#timeline = null;
      this.#listening = false;
      this.#credentialsChanged = true;
      if (!this.#closed) setTimeout(() => void this.#connect(), reconnectMs).unref();
    };
    try {
      const settings = { application_name: 'atoll watch', keepAlive: true, query_timeout: silenceMs };
      const { client, timeline } = await connectToPrimary(this.#url, settings, this.#newest());
      client.on('end', over);
      if (this.#closed || isLeft(timeline, this.#newest())) return void (await client.end());
      this.#client = client;
      this.#timeline = timeline;
      client.on('notification', notification => this.#heard(notification));
      const leave = () => void client.end().catch(() => {});
      asking = setInterval(() => {
        this.#notice();
        void client.query('select 1').catch(leave);
      }, silenceMs);
      asking.unref();
      await client.query(`listen ${credentialChannel}; listen ${sandboxChannel}`);
      this.#listening = true;
      this.#sandboxListener?.(null);
    } catch {
      // No database; every query reports that by itself, and `over` tries again.
      await this.#client?.end().catch(() => {});
      over();
    }
  }
}

const isSame = (one: Timeline | null, other: Timeline | null): boolean =>
  one?.systemId === other?.systemId && one?.timeline === other?.timeline;
