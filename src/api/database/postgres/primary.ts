import pg from 'pg';
import { messageOf } from '../../../base/error.ts';
import { hostsOf } from './hosts.ts';

/** Time for one server among several, as another one may answer. Milliseconds. */
const oneOfSeveralMs = 3_000;

/** The history of a database that a connection reaches: a promoted standby begins its own timeline. */
export type Timeline = { systemId: string; timeline: number };

const question = `
  select pg_is_in_recovery() as "isStandby", system_identifier::text as "systemId",
    case when pg_is_in_recovery() then 0
      else ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int end as timeline
  from pg_control_system()
`;

/** Asks a server what it is. Throws where it follows another one, and so takes no changes. */
async function requirePrimary(client: pg.Client | pg.PoolClient): Promise<Timeline> {
  const { rows } = await client.query<Timeline & { isStandby: boolean }>(question);
  const [found] = rows;
  if (!found || found.isStandby) throw new Error('it is a standby: it follows another server and takes no changes');
  return { systemId: found.systemId, timeline: found.timeline };
}

/**
 * A process's connections to that server of `url` which accepts changes. When it goes away or becomes a standby, the
 * others are asked. A server on an abandoned timeline, e.g. a primary that came back after another one was promoted, is
 * never chosen.
 */
export class Primary {
  readonly #places: readonly string[];
  readonly #settings: pg.PoolConfig;
  readonly #timelines = new WeakMap<pg.PoolClient, Timeline>();
  #pool: pg.Pool | null = null;
  #looking: Promise<pg.Pool> | null = null;
  #newest: Timeline | null = null;
  #ended = false;

  constructor(url: string, settings: pg.PoolConfig) {
    this.#places = hostsOf(url);
    this.#settings = settings;
  }

  /** A connection to the server that accepts changes. Throws what is wrong with each server. */
  async connect(): Promise<pg.PoolClient> {
    const known = this.#pool;
    const pool = known ?? (await this.#look());
    try {
      return await pool.connect();
    } catch (error) {
      // All of its connections are in use: another server would not help.
      if (pool.totalCount >= pool.options.max || this.#places.length === 1) throw error;
      this.#retire(pool);
      if (known === null) throw error;
      return (await this.#look()).connect();
    }
  }

  /** The newest timeline that a connection has reached. */
  get newest(): Timeline | null {
    return this.#newest;
  }

  /** The timeline of a connection: that of its server, as long as the connection lasts. */
  timelineOf(client: pg.PoolClient): Timeline | null {
    return this.#timelines.get(client) ?? null;
  }

  /** Requests a new connection, wherever the primary is by then: this one's server is gone or a standby. */
  lost(client: pg.PoolClient): void {
    if (this.#pool && this.#timelines.has(client)) this.#retire(this.#pool);
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#looking?.catch(() => {});
    await this.#pool?.end();
  }

  #retire(pool: pg.Pool): void {
    if (this.#pool === pool) this.#pool = null;
    // Settles when all borrowed connections are back; a pool that is ending already refuses.
    void pool.end().catch(() => {});
  }

  /** One search at a time, however many wait for it. */
  #look(): Promise<pg.Pool> {
    this.#looking ??= this.#choose().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #choose(): Promise<pg.Pool> {
    if (this.#ended) throw new Error('the database was closed');
    const place = await primaryAmong(this.#places, this.#newest);
    this.#pool = this.#poolAt(place);
    return this.#pool;
  }

  #poolAt(place: string): pg.Pool {
    const pool = new pg.Pool({
      ...this.#settings,
      connectionString: place,
      ...(this.#places.length > 1 && { connectionTimeoutMillis: oneOfSeveralMs }),
      onConnect: async client => {
        const timeline = await requirePrimary(client as pg.PoolClient);
        if (isLeft(timeline, this.#newest)) throw new Error(leftBehind);
        this.#newest = timeline;
        this.#timelines.set(client as pg.PoolClient, timeline);
      },
    });
    // A connection that the server closes is replaced at the next query; without a listener, its error would end the
    // process. The pool listens to idle connections only, and one in use may have no query at the moment to report the
    // error to.
    pool.on('error', () => {});
    pool.on('connect', client => client.on('error', () => {}));
    return pool;
  }
}

const leftBehind = 'it is on an older timeline: another server was promoted since';

/** Whether a server is on a timeline that was abandoned for a newer one. */
export function isLeft(found: Timeline, newest: Timeline | null): boolean {
  return newest !== null && found.systemId === newest.systemId && found.timeline < newest.timeline;
}

/**
 * The server that accepts changes: the one on the newest timeline, if several claim it. A single server is not asked:
 * its connections are.
 */
async function primaryAmong(places: readonly string[], newest: Timeline | null): Promise<string> {
  const [only] = places;
  if (places.length === 1 && only !== undefined) return only;
  const answers = await Promise.all(
    places.map(async place => {
      try {
        await using asked = await connectedTo(place, { connectionTimeoutMillis: oneOfSeveralMs });
        if (isLeft(asked.timeline, newest)) throw new Error(leftBehind);
        return { place, ...asked.timeline };
      } catch (error) {
        return { place, error: messageOf(error) || 'no answer' };
      }
    }),
  );
  const primaries = answers.flatMap(answer => ('timeline' in answer ? [answer] : []));
  const best = primaries.toSorted((a, b) => b.timeline - a.timeline)[0];
  if (best) return best.place;
  const reasons = answers.map((answer, number) => `server ${number + 1}: ${'error' in answer ? answer.error : ''}`);
  throw new Error(`none of ${places.length} servers takes changes (${reasons.join('; ')})`);
}

/**
 * A connection, outside of the pool, to that server of `url` which accepts changes. Where `newest` is known, servers on
 * a timeline abandoned for it are left out.
 */
export async function connectToPrimary(
  url: string,
  settings: pg.ClientConfig,
  newest: Timeline | null = null,
): Promise<{ client: pg.Client; timeline: Timeline } & AsyncDisposable> {
  const places = hostsOf(url);
  const place = await primaryAmong(places, newest);
  return connectedTo(place, { ...settings, ...(places.length > 1 && { connectionTimeoutMillis: oneOfSeveralMs }) });
}

async function connectedTo(place: string, settings: pg.ClientConfig) {
  const client = new pg.Client({ connectionTimeoutMillis: 10_000, ...settings, connectionString: place });
  client.on('error', () => {});
  const end = () => client.end().catch(() => {});
  try {
    await client.connect();
    return { client, timeline: await requirePrimary(client), [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}
