import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { issuer, startTokenServer } from './token-server.ts';

export type TestRegistry = AsyncDisposable & {
  /** `127.0.0.1:port` */
  host: string;
};

type Login = { username: string; password: string };

/**
 * Debian's docker-registry on a free port of the loopback. With `login` it requires a password; with `tokens` a token
 * that a separate server issues for that password, as the large registries do.
 */
export async function startRegistry(login?: Login, { tokens = false } = {}): Promise<TestRegistry> {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-registry-'));
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  const htpasswd = join(directory, 'htpasswd');
  const tokenServer = login && tokens ? startTokenServer(login) : undefined;
  const rootcertbundle = join(directory, 'authority.pem');
  if (tokenServer) writeFileSync(rootcertbundle, tokenServer.authority);
  if (login)
    writeFileSync(
      htpasswd,
      `${login.username}:${await Bun.password.hash(login.password, { algorithm: 'bcrypt', cost: 4 })}\n`,
    );
  const config = join(directory, 'config.yml');
  writeFileSync(
    config,
    JSON.stringify({
      version: 0.1,
      log: { level: 'error' },
      storage: { filesystem: { rootdirectory: join(directory, 'data') } },
      http: { addr: host },
      ...(login && {
        auth: tokenServer
          ? { token: { realm: tokenServer.realm, service: 'test', issuer, rootcertbundle } }
          : { htpasswd: { realm: 'test', path: htpasswd } },
      }),
    }),
  );
  const child = Bun.spawn(['docker-registry', 'serve', config], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  });
  const stop = async () => {
    child.kill();
    await child.exited;
    await tokenServer?.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  const deadline = Date.now() + 30_000;
  for (;;) {
    const answer = await fetch(`http://${host}/v2/`).catch(() => undefined);
    if (answer) break;
    if (Date.now() > deadline || child.exitCode !== null) {
      await stop();
      throw new Error('the registry did not start');
    }
    await Bun.sleep(50);
  }
  return { host, [Symbol.asyncDispose]: stop };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        typeof address === 'object' && address ? resolve(address.port) : reject(new Error('no port')),
      );
    });
  });
}
