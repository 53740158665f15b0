import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { goProgram } from './go.ts';

/** A real S3 server, which checks signatures: Apache-2.0, built from its own source. */
const server = { module: 'github.com/versity/versitygw/cmd/versitygw', version: '1.8.0' } as const;
const cacheDir = '/var/cache/atoll';
const kept = join(cacheDir, `versitygw-${server.version}`);
/** Its build has 150 packages. */
const buildTimeoutMs = 20 * 60_000;
const startTimeoutMs = 20_000;

/**
 * Why there is no S3 server to test with; undefined if there is one, or it can be built. A build takes two minutes of
 * both cores and many downloads, so only long suites do it.
 */
export function withoutS3(): string | undefined {
  if (existsSync(kept)) return undefined;
  if (process.env['LONG_TESTS'] !== '1')
    return `its S3 server (versitygw ${server.version}) is not built yet; npm run test:cluster does that`;
  if (goProgram() !== null) return undefined;
  return `its S3 server (versitygw ${server.version}) is built with Go, which is not installed (https://go.dev/dl)`;
}

/** An S3 server with one bucket, and its root key. */
export type S3Server = AsyncDisposable & {
  endpoint: string;
  bucket: string;
  /** Where it keeps the bucket's objects. */
  folder: string;
  keyId: string;
  secret: string;
  /** Stops answering, or answers again. */
  pause(): void;
  goOn(): void;
};

/**
 * Starts one on an address of this machine; or, with `on`, on another one: `on` says how to run programs there, and
 * names a port.
 */
export async function startS3(hostname = '127.0.0.1', on?: { enter: string[]; port: number }): Promise<S3Server> {
  const program = await built();
  const folder = mkdtempSync(join(tmpdir(), 'atoll-s3-'));
  const bucket = 'atoll-test';
  mkdirSync(join(folder, bucket));
  const port = on?.port ?? (await freePort(hostname));
  const [keyId, secret] = ['test-key', 'test-secret-0123456789'];
  const child = Bun.spawn(
    [...(on?.enter ?? []), program, '--quiet', '--port', `${hostname}:${port}`, 'posix', folder],
    {
      env: { PATH: process.env['PATH'] ?? '', ROOT_ACCESS_KEY: keyId, ROOT_SECRET_KEY: secret },
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'ignore',
    },
  );
  const endpoint = `http://${hostname}:${port}`;
  const s3: S3Server = {
    endpoint,
    bucket,
    folder: join(folder, bucket),
    keyId,
    secret,
    pause: () => child.kill('SIGSTOP'),
    goOn: () => child.kill('SIGCONT'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
  for (const deadline = performance.now() + startTimeoutMs; ;) {
    const answer = await fetch(endpoint).catch(() => undefined);
    if (answer) return s3;
    if (performance.now() > deadline || child.exitCode !== null) {
      await s3[Symbol.asyncDispose]();
      throw new Error('the S3 server does not answer');
    }
    await Bun.sleep(50);
  }
}

/** Built once, and kept for other runs. */
async function built(): Promise<string> {
  if (existsSync(kept)) return kept;
  const go = goProgram();
  if (go === null) throw new Error(withoutS3());
  const folder = mkdtempSync(join(tmpdir(), 'atoll-go-'));
  try {
    const child = Bun.spawn([go, 'install', `${server.module}@v${server.version}`], {
      env: { ...(process.env as Record<string, string>), GOBIN: folder },
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'pipe',
      timeout: buildTimeoutMs,
    });
    const [error, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    if (code !== 0) throw new Error(`versitygw could not be built: ${error.slice(-1000)}`);
    mkdirSync(cacheDir, { recursive: true });
    // Beside it first: another run may be doing the same.
    const draft = `${kept}.${process.pid}`;
    await Bun.write(draft, Bun.file(join(folder, 'versitygw')));
    Bun.spawnSync(['chmod', '755', draft]);
    renameSync(draft, kept);
    return kept;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function freePort(hostname: string): Promise<number> {
  const listening = createServer();
  await new Promise<void>(resolve => void listening.listen(0, hostname, () => resolve()));
  const address = listening.address();
  await new Promise<void>(resolve => void listening.close(() => resolve()));
  if (address === null || typeof address === 'string') throw new Error('there is no free port');
  return address.port;
}
