import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'bun:test';
import type { Agent } from '../agent.ts';
import { download } from './download.ts';

const settings = () => ({ accessToken: null, defaultUser: 'root', defaultWorkdir: '/', env: {} });
const agent = { settings } as unknown as Pick<Agent, 'settings'>;

function filesOpen(path: string): number {
  const targets = readdirSync('/proc/self/fd').map(fd => {
    try {
      return readlinkSync(join('/proc/self/fd', fd));
    } catch {
      return ''; // that of the folder itself
    }
  });
  return targets.filter(target => target === path).length;
}

test('a client that leaves before its answer begins leaves no open file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-download-'));
  const path = join(folder, 'large');
  writeFileSync(path, Buffer.alloc(5 << 20, 'ab'));
  const [rounds, allLeft] = [10, Promise.withResolvers<void>()];
  let answered = 0;
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await new Promise(resolve => request.signal.addEventListener('abort', resolve));
      const answer = await download(agent, request, new URL(request.url));
      if (++answered === 2 * rounds) allLeft.resolve();
      return answer;
    },
  });
  for (const coding of ['identity', 'gzip'])
    for (let round = 0; round < rounds; round++) {
      const socket = connect(server.port ?? 0, '127.0.0.1');
      const head = `GET /files?path=${path}&username=root HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ${coding}\r\n\r\n`;
      await new Promise(resolve => socket.once('connect', resolve));
      await new Promise(resolve => socket.write(head, resolve));
      socket.destroy();
    }
  await allLeft.promise;
  while (filesOpen(path) > 0) await Bun.sleep(20);
  await server.stop(true);
  rmSync(folder, { recursive: true });
});
