import { join } from 'node:path';

/** A service that speaks only HTTP/2, in a separate process. */
export type Http2Service = AsyncDisposable & { readonly port: number };

/** Starts one, with TLS if the files of a key and a certificate are given. */
export async function startHttp2Service(...tls: string[]): Promise<Http2Service> {
  const process = Bun.spawn(['node', join(import.meta.dir, 'http2-service.mjs'), ...tls], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const { value } = await process.stdout.getReader().read();
  const port = Number(Buffer.from(value ?? []).toString());
  if (!Number.isInteger(port) || port === 0) throw new Error(`the service did not start: ${Buffer.from(value ?? [])}`);
  return {
    port,
    async [Symbol.asyncDispose]() {
      process.kill();
      await process.exited;
    },
  };
}
