import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Socket, connect, createServer } from 'node:net';
import type { StoreLocation } from '../../src/api/database/db.ts';

/**
 * What happens to the next commit: cut before the server gets it, or after it was made and before its answer arrives.
 */
type Cut = 'before' | 'after';

/** A wire to PostgreSQL that can be cut at a commit. */
type Wire = AsyncDisposable & {
  readonly location: StoreLocation;
  /**
   * Cuts at the next commit of a transaction in which `said` was sent. Unless it `stays`, nobody can connect from then
   * until `mend`.
   */
  cutAtCommit(said: string, how: Cut, stays: boolean): void;
  mend(): void;
  /** How many commits were cut. */
  readonly cuts: number;
};

const commitQuery = Buffer.from('commit\0');

/** Stands between a client and the server at `socketPath`. */
export async function startWire(socketPath: string, database: string): Promise<Wire> {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-wire-'));
  const state: { next: { said: string; how: Cut; stays: boolean } | null; open: boolean; cuts: number } = {
    next: null,
    open: true,
    cuts: 0,
  };
  const sockets = new Set<Socket>();
  const server = createServer(client => {
    if (!state.open) return void client.destroy();
    const upstream = connect(socketPath);
    let dropping = false;
    let transaction = '';
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    const cut = () => {
      for (const socket of state.open ? [client, upstream] : [...sockets]) socket.destroy();
    };
    client.on('data', (bytes: Buffer) => {
      const plan = state.next;
      if (bytes.includes('start transaction', 0, 'latin1')) transaction = '';
      transaction += bytes.toString('latin1');
      if (plan === null || !bytes.includes(commitQuery) || !transaction.includes(plan.said))
        return void upstream.write(bytes);
      state.next = null;
      state.cuts++;
      state.open = plan.stays;
      if (plan.how === 'before') return cut();
      dropping = true;
      upstream.write(bytes);
    });
    upstream.on('data', (bytes: Buffer) => (dropping ? cut() : void client.write(bytes)));
  });
  await new Promise<void>(resolve => server.listen(join(directory, '.s.PGSQL.5432'), resolve));
  return {
    location: { kind: 'postgres', url: `postgres://atoll@/${database}?host=${encodeURIComponent(directory)}` },
    cutAtCommit: (said, how, stays) => void (state.next = { said, how, stays }),
    mend() {
      state.next = null;
      state.open = true;
    },
    get cuts() {
      return state.cuts;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise(resolve => server.close(resolve));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
