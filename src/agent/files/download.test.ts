import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
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
  let left = 0;
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await Bun.sleep(3); // for long enough that the client is gone
      const answer = await download(agent, request, new URL(request.url));
      if (request.signal.aborted) left++;
      return answer;
    },
  });
  for (const coding of ['identity', 'gzip'])
    for (let round = 0; round < 10; round++) {
      const socket = connect(server.port ?? 0, '127.0.0.1');
      const head = `GET /files?path=${path}&username=root HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ${coding}\r\n\r\n`;
      await new Promise(resolve => socket.once('connect', resolve));
      await new Promise(resolve => socket.write(head, resolve));
      socket.destroy();
    }
  await Bun.sleep(300);
  expect(left).toBeGreaterThan(0);
  expect(filesOpen(path)).toBe(0);
  await server.stop(true);
  rmSync(folder, { recursive: true });
});
