import { join } from 'node:path';

const peer = join(import.meta.dir, 'grpc-peer.mjs');

/** A gRPC server in a separate process. */
export type GrpcServer = AsyncDisposable & { readonly port: number };

/** The outcome of a call, see `grpc-peer.mjs`. */
type Outcome = { readonly name: string; readonly code?: number; readonly late?: true } & Record<string, unknown>;

/** Starts a server, with TLS if the files of a key and a certificate are given. */
export async function startGrpcServer(...tls: string[]): Promise<GrpcServer> {
  const process = Bun.spawn(['node', peer, 'server', ...tls], { stdout: 'pipe', stderr: 'inherit' });
  const reader = process.stdout.getReader();
  const { value } = await reader.read();
  const port = Number(Buffer.from(value ?? []).toString());
  if (!Number.isInteger(port) || port === 0)
    throw new Error(`the gRPC server did not start: ${Buffer.from(value ?? [])}`);
  return {
    port,
    async [Symbol.asyncDispose]() {
      process.kill();
      await process.exited;
    },
  };
}

/** Makes calls in a separate process, and answers their outcomes by name. */
export async function askGrpc(parameters: readonly string[]): Promise<Record<string, Outcome>> {
  const process = Bun.spawn(['node', peer, 'client', ...parameters], { stdout: 'pipe', stderr: 'pipe' });
  const [text, trouble] = await Promise.all([new Response(process.stdout).text(), new Response(process.stderr).text()]);
  if ((await process.exited) !== 0) throw new Error(`the gRPC client failed: ${trouble}`);
  const outcomes = text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Outcome);
  return Object.fromEntries(outcomes.map(outcome => [outcome.name, outcome]));
}
