import { join } from 'node:path';

/** A request as Node.js's parser found it; `refused`: bytes in which it found none. */
export type Found =
  | {
      readonly method: string;
      readonly url: string;
      readonly bytes: number;
      readonly ended: boolean;
      readonly trailers: number;
      readonly headers: Record<string, string>;
    }
  | { readonly refused: string };

export type Llhttp = AsyncDisposable & {
  readonly port: number;
  /** What was found since the last call. */
  take(): Promise<Found[]>;
};

/** Starts a server on the parser of this machine's Node.js. */
export async function startLlhttp(): Promise<Llhttp> {
  const child = Bun.spawn(['node', join(import.meta.dir, 'llhttp-server.mjs')], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const reader = child.stdout.getReader();
  const line = new TextDecoder().decode((await reader.read()).value);
  const [port = 0, control = 0] = line.trim().split(' ').map(Number);
  return {
    port,
    take: async () => (await (await fetch(`http://127.0.0.1:${control}`)).json()) as Found[],
    async [Symbol.asyncDispose]() {
      void child.stdin.end();
      await child.exited;
    },
  };
}
