import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { openStore } from '../../src/api/database/database.ts';
import type { StoreLocation } from '../../src/api/database/db.ts';
import { start } from '../support/process.ts';
import { seedOf } from './support/seeds.ts';

const debianVersions = '/usr/lib/postgresql';

/** The folder of the newest PostgreSQL that the distribution's package has installed, or null. */
export function postgresPrograms(): string | null {
  const versions = existsSync(debianVersions) ? readdirSync(debianVersions) : [];
  const newest = versions.toSorted((a, b) => Number(b) - Number(a))[0];
  const programs = newest === undefined ? null : join(debianVersions, newest, 'bin');
  return programs !== null && existsSync(join(programs, 'initdb')) ? programs : null;
}

/** Why there is no PostgreSQL to test with; undefined if there is one. */
export function withoutPostgres(): string | undefined {
  return postgresPrograms() ? undefined : 'its server is not installed (Debian: apt-get install postgresql)';
}

/** The database with today's schema that every server has. */
const seedName = 'seed';

/** What is special about a server. */
type ServerOptions = {
  /** A folder for its log, e.g. on a disk of its own. */
  logFolder?: string;
  /** A prefix for the server's command line. */
  enter?: readonly string[];
};

/** A temporary PostgreSQL that listens only on a unix socket. */
export class PostgresCluster implements AsyncDisposable {
  readonly #directory: string;
  readonly #programs: string;
  readonly #enter: readonly string[];
  #databases = 0;
  /** Waits for the end of this process; a reference is kept, because it takes a closed pipe for that end. */
  #guard: ReturnType<typeof start> | undefined;

  private constructor(directory: string, programs: string, enter: readonly string[] = []) {
    this.#directory = directory;
    this.#programs = programs;
    this.#enter = enter;
  }

  static async start(programs: string, { logFolder, enter }: ServerOptions = {}): Promise<PostgresCluster> {
    const seed = await seedOf('postgres', path => PostgresCluster.#makeSeed(programs, path));
    const makeData = async (data: string) => {
      await run(['cp', '-a', '--reflink=auto', seed, data]);
      if (logFolder === undefined) return;
      await run(['mv', join(data, 'pg_wal'), join(logFolder, 'pg_wal')]);
      await run(['ln', '-s', join(logFolder, 'pg_wal'), join(data, 'pg_wal')]);
    };
    return PostgresCluster.#make(programs, makeData, enter);
  }

  /** Makes a server's data, with a database that has today's schema. */
  static async #makeSeed(programs: string, path: string): Promise<void> {
    await using cluster = await PostgresCluster.#make(programs, data =>
      runPostgres(programs, 'initdb', '-D', data, '-A', 'trust', '-U', 'atoll', '--no-sync', '--locale=C.UTF-8'),
    );
    await newDatabaseAt(cluster.#directory, seedName);
    const store = await openStore({ kind: 'postgres', url: cluster.#url(seedName) });
    await store[Symbol.asyncDispose]();
    await cluster.stop('fast');
    await run(['cp', '-a', join(cluster.#directory, 'data'), path]);
  }

  static async #make(
    programs: string,
    makeData: (data: string) => Promise<void>,
    enter?: readonly string[],
  ): Promise<PostgresCluster> {
    const directory = mkdtempSync(join(tmpdir(), 'atoll-pg-'));
    const cluster = new PostgresCluster(directory, programs, enter);
    try {
      if (process.getuid?.() === 0) await run(['chown', 'postgres:postgres', directory]);
      // A whole platform's api connects as a user of its own.
      await run(['chmod', '711', directory]);
      await makeData(join(directory, 'data'));
      await cluster.#start();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** A new empty database. */
  async newDatabase(): Promise<StoreLocation> {
    const name = `test${++this.#databases}`;
    await newDatabaseAt(this.#directory, name);
    return { kind: 'postgres', url: this.#url(name) };
  }

  /** A new database with today's schema: a copy, because migrations take longer than most tests. */
  async newStore(): Promise<StoreLocation> {
    const name = `test${++this.#databases}`;
    await newDatabaseAt(this.#directory, name, seedName);
    return { kind: 'postgres', url: this.#url(name) };
  }

  /** Removes databases that this server made, even if clients are still connected. */
  async drop(locations: readonly StoreLocation[]): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url('postgres') });
    await client.connect();
    for (const location of locations) {
      const name = location.kind === 'postgres' ? /\/(\w+)\?/.exec(location.url)?.[1] : undefined;
      if (name !== undefined) await client.query(`drop database if exists ${name} with (force)`);
    }
    await client.end();
  }

  /** Ends the server once this process is gone, however it ended: the test runner tells nobody of its end. */
  endWithThisProcess(): void {
    const stop = asPostgres(this.#programs, 'pg_ctl', '-D', join(this.#directory, 'data'), '-m', 'immediate', 'stop');
    const script = 'cat > /dev/null; "$@"; rm -rf "$0"';
    const guard = start(['sh', '-c', script, this.#directory, ...stop], { cwd: '/' });
    guard.unref();
    this.#guard = guard;
  }

  /** Ends the server at once, like a crash, and starts it again. */
  async crash(): Promise<void> {
    await this.#run('pg_ctl', '-D', join(this.#directory, 'data'), '-m', 'immediate', '-w', 'stop');
    await this.#start();
  }

  /** Ends the server: `fast` closes connections in order, `immediate` is a crash. */
  async stop(how: 'fast' | 'immediate'): Promise<void> {
    await this.#run('pg_ctl', '-D', join(this.#directory, 'data'), '-m', how, '-w', 'stop');
  }

  /** Starts it again. */
  async resume(): Promise<void> {
    await this.#start();
  }

  /** Starts it again if it has ended by itself. */
  async revive(): Promise<void> {
    const data = join(this.#directory, 'data');
    const isThere = await this.#run('pg_ctl', '-D', data, 'status').then(
      () => true,
      () => false,
    );
    if (!isThere) await this.#start();
  }

  /** Where its unix socket is. */
  get socketPath(): string {
    return join(this.#directory, '.s.PGSQL.5432');
  }

  #url(database: string): string {
    return urlAt(this.#directory, database);
  }

  async #start(): Promise<void> {
    // These tests kill only processes, not the machine: so neither fsync nor zeros in new log files are needed.
    const options = `-c listen_addresses= -c fsync=off -c wal_init_zero=off -k ${this.#directory}`;
    const [data, log] = ['data', 'log'].map(name => join(this.#directory, name));
    const start = asPostgres(this.#programs, 'pg_ctl', '-D', `${data}`, '-w', '-o', options, '-l', `${log}`, 'start');
    await run([...this.#enter, ...start]);
  }

  async #run(program: string, ...args: string[]): Promise<void> {
    await runPostgres(this.#programs, program, ...args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#guard?.stdin?.end();
    const data = join(this.#directory, 'data');
    if (existsSync(join(data, 'postmaster.pid')))
      await this.#run('pg_ctl', '-D', data, '-m', 'immediate', '-w', 'stop');
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** The servers that this process's tests share, by the folder of their programs. */
const shared = new Map<string, Promise<PostgresCluster>>();

/**
 * Databases of one test or file, on a server that all of this process shares: a server of its own costs more than most
 * tests. Tests that stop their server, or look at all of it, start one.
 */
export class SharedDatabases implements AsyncDisposable {
  readonly #server: PostgresCluster;
  readonly #made: StoreLocation[] = [];

  private constructor(server: PostgresCluster) {
    this.#server = server;
  }

  static async open(programs: string): Promise<SharedDatabases> {
    const server = shared.get(programs) ?? startShared(programs);
    shared.set(programs, server);
    return new SharedDatabases(await server);
  }

  /** A new empty database. */
  async newDatabase(): Promise<StoreLocation> {
    return this.#keep(await this.#server.newDatabase());
  }

  /** A new database with today's schema. */
  async newStore(): Promise<StoreLocation> {
    return this.#keep(await this.#server.newStore());
  }

  #keep(location: StoreLocation): StoreLocation {
    this.#made.push(location);
    return location;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.drop(this.#made);
  }
}

async function startShared(programs: string): Promise<PostgresCluster> {
  const server = await PostgresCluster.start(programs);
  server.endWithThisProcess();
  return server;
}

/** Runs a program of PostgreSQL's. */
export async function runPostgres(programs: string, program: string, ...args: string[]): Promise<void> {
  await run(asPostgres(programs, program, ...args));
}

/** The command line of a program that refuses to run as root. */
function asPostgres(programs: string, program: string, ...args: string[]): string[] {
  const user = process.getuid?.() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : [];
  return [...user, join(programs, program), ...args];
}

/** Makes a database on the server whose unix socket is in a folder: an empty one, or a copy of `template`. */
export async function newDatabaseAt(folder: string, name: string, template = 'template1'): Promise<void> {
  const client = new pg.Client({ connectionString: urlAt(folder, 'postgres') });
  await client.connect();
  const { rows } = await client.query<{ version: string }>("select current_setting('server_version_num') as version");
  // From version 15 on, it would otherwise write each page to the log, and leave out the file that a first connection
  // begins with.
  const how = Number(rows[0]?.version) >= 150_000 ? 'strategy file_copy' : '';
  await client.query(`create database ${name} template ${template} ${how}`);
  await client.end();
}

const urlAt = (folder: string, database: string) => `postgres://atoll@/${database}?host=${encodeURIComponent(folder)}`;

async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdout: 'ignore', stderr: 'pipe', stdin: 'ignore', cwd: '/' });
  const [code, text] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${text}`);
}
