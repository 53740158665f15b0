import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd, waitFor } from '../support/process.ts';
import { atoll } from './support/directory.ts';

const timeoutMs = 300_000;
const bytesPerMiB = 1024 ** 2;
const reserveMiB = 400;
const clientOf = ({ ready }: TestPlatform) => ({
  apiKey: ready.apiKey,
  apiUrl: ready.url,
  sandboxUrl: ready.url,
  domain: ready.domain,
  requestTimeoutMs: 60_000,
});
const freeMiB = (path: string) => {
  const { bavail, bsize } = statfsSync(path);
  return (bavail * bsize) / bytesPerMiB;
};
const run = async (...argv: string[]) => {
  const done = await runToEnd(argv);
  if (done.exitCode !== 0) throw new Error(`${argv.join(' ')}: ${done.stderr}`);
  return done.stdout.trim();
};
/** Runs a command and answers its outcome, whatever it is. */
const tried = (sandbox: Sandbox, command: string) =>
  sandbox.commands.run(command, { timeoutMs: 60_000 }).then(
    ({ stdout, stderr }) => ({ exitCode: 0, text: stdout + stderr }),
    (error: { exitCode?: number; stdout?: string; stderr?: string }) => ({
      exitCode: error.exitCode ?? -1,
      text: `${error.stdout}${error.stderr}${error}`,
    }),
  );

/** A small separate disk for a data directory. */
async function smallDisk(sizeMiB: number): Promise<AsyncDisposable & { path: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-disk-'));
  const path = join(folder, 'mounted');
  mkdirSync(path);
  await run('truncate', '-s', `${sizeMiB}M`, join(folder, 'image'));
  await run('mkfs.ext4', '-q', '-F', '-m', '0', join(folder, 'image'));
  await run('mount', '-o', 'loop', join(folder, 'image'), path);
  return {
    path,
    async [Symbol.asyncDispose]() {
      await run('umount', path);
      rmSync(folder, { recursive: true });
    },
  };
}

const metric = async ({ ready }: TestPlatform, name: string) => {
  const token = readFileSync(join(ready.dataDir, 'metrics-token'), 'utf8').trim();
  const text = await (
    await fetch(new URL('/metrics', ready.url), { headers: { Authorization: `Bearer ${token}` } })
  ).text();
  return Number(new RegExp(`^atoll_node_${name}{[^}]*} (\\S+)$`, 'm').exec(text)?.[1]);
};

test(
  'tenants can’t fill the disk: they get a real ENOSPC, others go on, and what was held is let go when there is room',
  async () => {
    await using disk = await smallDisk(3500);
    await using platform = await startPlatform({
      ATOLL_DATA_DIR: join(disk.path, 'data'),
      ATOLL_DISK_RESERVE_MIB: `${reserveMiB}`,
      ATOLL_POOL_SIZE: '1',
    });
    const client = clientOf(platform);
    const create = () => Sandbox.create({ ...client, timeoutMs: 3_600_000 });
    const [greedy, sly, quiet] = [await create(), await create(), await create()];
    await quiet.files.write('/home/user/note', 'kept');
    expect(await metric(platform, 'disk_reserve_bytes')).toBe(reserveMiB * bytesPerMiB);

    // What is reserved inside but not yet written counts as used: writing it later needs no new blocks.
    const owed = Math.floor((freeMiB(disk.path) - reserveMiB) / 2);
    expect((await tried(sly, `fallocate -l ${owed}M /home/user/owed`)).exitCode).toBe(0);
    await waitFor(
      'the debt to be seen',
      async () => (await metric(platform, 'disk_owed_bytes')) > owed * 0.9 * bytesPerMiB,
    );
    const filled = await tried(greedy, 'dd if=/dev/zero of=/home/user/big bs=1M count=9000 conv=fsync');
    expect(filled.text).toContain('No space left on device');
    await waitFor('disks to be held', async () => (await metric(platform, 'disk_held')) === 1);
    expect(
      await tried(sly, `dd if=/dev/zero of=/home/user/owed bs=1M count=${owed} conv=notrunc,fsync status=none`),
    ).toEqual({ exitCode: 0, text: '' });
    expect(freeMiB(disk.path)).toBeGreaterThan(0);

    // Root inside gets no more than others; existing data can be read, changed and removed.
    expect((await tried(quiet, 'sudo sh -c "head -c 20M /dev/zero > /root/more"')).text).toContain('No space left');
    expect(await quiet.files.read('/home/user/note')).toBe('kept');
    expect((await tried(quiet, 'echo over | dd of=/home/user/note conv=notrunc && sync')).exitCode).toBe(0);
    const refused = await platform.api('POST', '/v2/sandboxes', { templateID: 'base' });
    expect({ status: refused.status, body: await refused.text() }).toEqual({
      status: 503,
      body: expect.stringMatching(/\d+ MiB are free, and 400 MiB are kept back/),
    });
    expect((await platform.api('GET', '/health')).status).toBeLessThan(300);
    expect(await (await platform.api('GET', `/v2/sandboxes/${quiet.sandboxId}/logs`)).text()).toContain(
      'nothing new can be written',
    );

    // A tenant can free room by itself.
    expect((await tried(greedy, 'rm /home/user/big && sync')).exitCode).toBe(0);
    await waitFor('disks to be let go', async () => (await metric(platform, 'disk_held')) === 0, 30_000);
    for (const sandbox of [greedy, sly, quiet])
      expect((await tried(sandbox, 'head -c 5M /dev/zero > /home/user/again && sync')).exitCode).toBe(0);
    expect((await platform.api('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(201);

    // Something other than sandboxes fills the disk to the last byte: deleting works, and everything else says what is
    // wrong.
    await runToEnd(['dd', 'if=/dev/zero', `of=${join(disk.path, 'filler')}`, 'bs=1M']);
    expect(freeMiB(disk.path)).toBeLessThan(70);
    await waitFor('the ballast to be given up', () => !existsSync(join(platform.ready.dataDir, 'ballast')));
    // Data that was being written out when the disk became full may take another moment.
    await waitFor(
      'a delete',
      async () => (await platform.api('DELETE', `/sandboxes/${greedy.sandboxId}`)).status === 204,
    );
    expect((await platform.api('POST', `/sandboxes/${quiet.sandboxId}/timeout`, { timeout: 3000 })).status).toBe(204);
    expect((await platform.api('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(503);
    const key = await atoll(platform.env, 'key', 'create', '--name', 'full');
    expect(key.stderr).not.toMatch(/\n\s+at /);
    await platform.stop();
    await platform.restart();
    expect((await platform.api('DELETE', `/sandboxes/${sly.sandboxId}`)).status).toBe(204);
    rmSync(join(disk.path, 'filler'));
    await waitFor('disks to be let go', async () => (await metric(platform, 'disk_held')) === 0, 30_000);
    expect((await tried(quiet, 'head -c 5M /dev/zero > /home/user/last && sync')).exitCode).toBe(0);
    await waitFor('the ballast to be back', () => existsSync(join(platform.ready.dataDir, 'ballast')));
  },
  timeoutMs,
);
