import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StoreLocation } from '../../src/api/database/db.ts';
import { newDatabaseAt, runPostgres } from './postgres.ts';

/** One server of a pair: its unix socket, and what can be done to it. */
type Server = {
  folder: string;
  start(): Promise<void>;
  /** `immediate` is a crash. */
  stop(how: 'fast' | 'immediate'): Promise<void>;
};

/** A primary and its standby, on unix sockets only. */
export type PostgresPair = AsyncDisposable & {
  first: Server;
  second: Server;
  /** Both servers in one URL. */
  location: StoreLocation;
  /** The second one accepts changes from here on. */
  promote(): Promise<void>;
};

/** Starts a primary with a standby. `isSync`: the primary answers a commit only when the standby has it too. */
export async function startPair(programs: string, { isSync }: { isSync: boolean }): Promise<PostgresPair> {
  await using made = new AsyncDisposableStack();
  const folders = [0, 1].map(number => mkdtempSync(join(tmpdir(), `atoll-pg${number}-`)));
  for (const folder of folders) {
    made.defer(() => rmSync(folder, { recursive: true, force: true }));
    Bun.spawnSync(['chown', 'postgres:postgres', folder]);
    Bun.spawnSync(['chmod', '711', folder]);
  }
  const [one = '', two = ''] = folders;
  const [first, second] = [serverIn(programs, one), serverIn(programs, two)];
  const data = join(one, 'data');
  await runPostgres(programs, 'initdb', '-D', data, '-A', 'trust', '-U', 'atoll', '--no-sync', '--locale=C.UTF-8');
  made.defer(() => stopIfThere(first, one));
  await first.start();
  const database = 'pair';
  await newDatabaseAt(one, database);
  // -R writes what a standby needs to follow the server that it is copied from.
  const copy = ['-D', join(two, 'data'), '-h', one, '-U', 'atoll', '-R', '-X', 'stream', '--no-sync', '-c', 'fast'];
  await runPostgres(programs, 'pg_basebackup', ...copy);
  made.defer(() => stopIfThere(second, two));
  await second.start();
  if (isSync) {
    writeFileSync(join(data, 'postgresql.auto.conf'), "synchronous_standby_names = '*'\n");
    await runPostgres(programs, 'pg_ctl', '-D', data, 'reload');
  }
  const disposal = made.move();
  return {
    first,
    second,
    location: { kind: 'postgres', url: `postgres://atoll@/${database}?host=${encodeURIComponent(`${one},${two}`)}` },
    promote: () => runPostgres(programs, 'pg_ctl', '-D', join(two, 'data'), '-w', 'promote'),
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

function serverIn(programs: string, folder: string): Server {
  const data = join(folder, 'data');
  // fsync off: these tests kill only processes, not the machine.
  const options = `-c listen_addresses= -c fsync=off -k ${folder}`;
  return {
    folder,
    start: () => runPostgres(programs, 'pg_ctl', '-D', data, '-w', '-o', options, '-l', join(folder, 'log'), 'start'),
    stop: how => runPostgres(programs, 'pg_ctl', '-D', data, '-m', how, '-w', 'stop'),
  };
}

async function stopIfThere(server: Server, folder: string): Promise<void> {
  if (existsSync(join(folder, 'data/postmaster.pid'))) await server.stop('immediate');
}
