import { expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { killIfThere } from '../../src/base/if-there.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

const timeoutMs = 300_000;
/** After CRIU's start; a dump and a restore take 0.1 to 0.3 s. */
const moments = process.env['CRIU_MOMENTS']
  ? Array.from({ length: Number(process.env['CRIU_MOMENTS']) }, (_, index) => index * 4)
  : [0, 8, 20, 35, 50, 70, 90, 110, 140, 180];

const clientOf = ({ ready }: TestPlatform) => ({
  apiKey: ready.apiKey,
  apiUrl: ready.url,
  sandboxUrl: ready.url,
  domain: ready.domain,
  requestTimeoutMs: 20_000,
});
const readOr = (path: string) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it has ended
  }
};

/** The CRIU processes of this installation, by what they do. */
function criuOf({ ready }: TestPlatform, command: 'dump' | 'restore'): number[] {
  const run = readdirSync('/run/atoll')
    .map(name => join('/run/atoll', name))
    .find(path => readOr(join(path, 'owner')) === ready.dataDir);
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      const argv = readOr(`/proc/${pid}/cmdline`).split('\0');
      return argv.includes(command) && argv.some(part => part.startsWith(`${run}/`) && part.endsWith('.conf'));
    });
}

/** Resolves once CRIU is seen, or once the operation that would have started it is over: a short run may be missed. */
async function whenCriuRuns(
  platform: TestPlatform,
  command: 'dump' | 'restore',
  request: Promise<unknown>,
): Promise<void> {
  let settled = false;
  const over = () => void (settled = true);
  void request.then(over, over);
  while (!settled && criuOf(platform, command).length === 0) await Bun.sleep(1);
}

/** Kills CRIU `afterMs` after it was first seen. Answers whether it still existed. */
async function killCriu(
  platform: TestPlatform,
  command: 'dump' | 'restore',
  afterMs: number,
  request: Promise<unknown>,
): Promise<boolean> {
  await whenCriuRuns(platform, command, request);
  // A window of CRIU's work: it is killed at many moments.
  await Bun.sleep(afterMs);
  const found = criuOf(platform, command);
  return found.map(killIfThere).some(Boolean);
}

const stateOf = async (platform: TestPlatform, id: string) =>
  ((await (await platform.api('GET', `/sandboxes/${id}`)).json()) as { state: string }).state;

test(
  'CRIU that is killed at any moment of a dump leaves the sandbox running and reachable, or paused; of a restore, paused',
  async () => {
    await using platform = await startPlatform({ ATOLL_FROZEN_SECONDS: '0' });
    const client = clientOf(platform);
    const seen = { dumps: 0, restores: 0, ranOn: 0, paused: 0, stopped: 0 };
    let sandbox = await Sandbox.create({ ...client, timeoutMs: 3_600_000 });
    const prepare = async () => {
      await sandbox.files.write('/home/user/note', 'kept');
      // A process that counts, and two that talk over a connection that is never closed.
      await sandbox.commands.run('n=0; while :; do n=$((n+1)); echo $n > /tmp/count; sleep 0.02; done', {
        background: true,
      });
      await sandbox.commands.run(
        `python3 -uc 'import socket,time
s=socket.create_server(("127.0.0.1",7000)); c=socket.create_connection(("127.0.0.1",7000)); a,_=s.accept()
n=0
while True:
  n+=1; c.sendall(b"x"); a.recv(1); open("/tmp/talk","w").write(str(n)); time.sleep(0.02)'`,
        { background: true },
      );
      await waitFor(
        'both to count',
        async () => (await sandbox.files.exists('/tmp/talk')) && (await sandbox.files.exists('/tmp/count')),
      );
    };
    await prepare();
    for (const moment of moments) {
      const pause = platform.api('POST', `/sandboxes/${sandbox.sandboxId}/pause`);
      const killed = await killCriu(platform, 'dump', moment, pause);
      const answer = await pause;
      const { status } = answer;
      if (killed && status !== 204) {
        seen.dumps++;
        expect({ moment, status, text: await answer.text() }).toEqual({
          moment,
          status: 503,
          text: expect.stringContaining('CRIU'),
        });
      }
      const state = await stateOf(platform, sandbox.sandboxId);
      seen[state === 'running' ? 'ranOn' : 'paused']++;
      sandbox = await Sandbox.connect(sandbox.sandboxId, client);
      expect(await sandbox.files.read('/home/user/note')).toBe('kept');
      // If the processes are still the same ones, they and their conversation go on, except for a process that CRIU was
      // working on at that very moment.
      if (state === 'running') {
        const goes = await Promise.all(
          ['/tmp/count', '/tmp/talk'].map(async file => {
            const before = Number(await sandbox.files.read(file));
            return waitFor(
              `${file} to go on`,
              async () => Number(await sandbox.files.read(file)) > before + 2,
              5_000,
            ).catch(() => false);
          }),
        );
        seen.stopped += goes.filter(goesOn => !goesOn).length;
        if (goes.includes(false)) {
          await sandbox.kill();
          sandbox = await Sandbox.create({ ...client, timeoutMs: 3_600_000 });
          await prepare();
        }
      } else if (!(await sandbox.files.exists('/tmp/talk'))) await prepare();
    }
    for (const moment of moments.filter((_, index) => index % 2 === 0)) {
      await sandbox.pause();
      const connect = platform.api('POST', `/sandboxes/${sandbox.sandboxId}/connect`, { timeout: 3600 });
      const killed = await killCriu(platform, 'restore', moment, connect);
      const answer = await connect;
      const { status } = answer;
      if (killed && status >= 300) {
        seen.restores++;
        const state = await stateOf(platform, sandbox.sandboxId);
        expect({ moment, state, status, text: await answer.text() }).toEqual({
          moment,
          state: 'paused',
          status: 503,
          text: expect.stringContaining('CRIU was ended by signal 9'),
        });
      }
      sandbox = await Sandbox.connect(sandbox.sandboxId, client);
      expect(await sandbox.files.read('/home/user/note')).toBe('kept');
    }
    expect(seen.dumps).toBeGreaterThan(2);
    expect(seen.stopped).toBeLessThan(seen.ranOn);
    expect(seen.restores).toBeGreaterThan(0);
  },
  timeoutMs,
);

test(
  'CRIU and platform killed together leave the sandbox running and reachable at the next start',
  async () => {
    await using platform = await startPlatform({ ATOLL_FROZEN_SECONDS: '0' });
    const client = clientOf(platform);
    const sandbox = await Sandbox.create({ ...client, timeoutMs: 3_600_000 });
    await sandbox.files.write('/home/user/note', 'kept');
    for (const moment of [40, 80, 120]) {
      const pause = platform.api('POST', `/sandboxes/${sandbox.sandboxId}/pause`).catch(() => undefined);
      await whenCriuRuns(platform, 'dump', pause);
      await Bun.sleep(moment);
      const found = criuOf(platform, 'dump');
      const ended = platform.kill9();
      for (const pid of found) killIfThere(pid);
      await Promise.all([pause, ended]);
      await platform.restart();
      const again = await Sandbox.connect(sandbox.sandboxId, client);
      expect(await again.files.read('/home/user/note')).toBe('kept');
    }
  },
  timeoutMs,
);
