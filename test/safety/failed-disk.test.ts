import { expect, test } from 'bun:test';
import { existsSync, readFileSync, readdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd, waitFor } from '../support/process.ts';

const timeoutMs = 300_000;
const clientOf = ({ ready }: TestPlatform) => ({
  apiKey: ready.apiKey,
  apiUrl: ready.url,
  sandboxUrl: ready.url,
  domain: ready.domain,
  requestTimeoutMs: 60_000,
});
/**
 * FS_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH, as ext4 does by itself when the disk below it refuses a write to
 * its journal. Source: linux/fs.h.
 */
const shutDown =
  'import fcntl,os,struct,sys; fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack("I", 2))';

test(
  'a sandbox whose disk has failed says so, runs on, and is repaired by a pause without memory and a resume',
  async () => {
    await using platform = await startPlatform();
    const client = clientOf(platform);
    const sandbox = await Sandbox.create({ ...client, timeoutMs: 3_600_000 });
    const { sandboxId } = sandbox;
    await sandbox.files.write('/home/user/note', 'good');
    await sandbox.commands.run('sync');
    await failDisk(platform, sandboxId);
    await waitFor('it to be told', () => platform.log().includes('the disk of a sandbox has failed'));
    await waitFor('the metric', async () => (await failedDisks(platform)) === 1);
    await waitFor('its log to say so', async () =>
      (await (await platform.api('GET', `/v2/sandboxes/${sandboxId}/logs`)).text()).includes('its disk has failed'),
    );
    await waitFor('its events to say so', async () =>
      (await (await platform.api('GET', `/events/sandboxes/${sandboxId}`)).text()).includes(
        'sandbox.lifecycle.disk_failed',
      ),
    );
    expect((await sandbox.commands.run('echo it runs on')).stdout).toContain('it runs on');
    expect((await platform.api('POST', `/sandboxes/${sandboxId}/pause`, { memory: false })).status).toBe(204);
    const again = await Sandbox.connect(sandboxId, client);
    expect(await again.files.read('/home/user/note')).toBe('good');
    const { stdout } = await again.commands.run('echo more > /home/user/more && sync && cat /home/user/more');
    expect(stdout).toContain('more');
    await waitFor('the metric to say so', async () => (await failedDisks(platform)) === 0);
  },
  timeoutMs,
);

test(
  'one whose disk can’t be repaired says that, stays with what it has, and can be killed',
  async () => {
    await using platform = await startPlatform();
    const sandbox = await Sandbox.create({ ...clientOf(platform), timeoutMs: 3_600_000 });
    const { sandboxId } = sandbox;
    await failDisk(platform, sandboxId);
    await waitFor('it to be told', () => platform.log().includes('the disk of a sandbox has failed'));
    const image = join(platform.ready.dataDir, 'node/sandboxes', sandboxId, 'kept/disk.img');
    truncateSync(image, 64 * 1024);
    expect((await platform.api('POST', `/sandboxes/${sandboxId}/pause`, { memory: false })).status).toBe(204);
    const refused = await platform.api('POST', `/sandboxes/${sandboxId}/resume`, {});
    expect(refused.status).toBe(500);
    expect(await refused.json()).toMatchObject({ error_code: 'sandbox_state_damaged' });
    expect(existsSync(image)).toBe(true);
    expect(await (await platform.api('GET', `/sandboxes/${sandboxId}`)).json()).toMatchObject({ state: 'paused' });
    expect((await platform.api('DELETE', `/sandboxes/${sandboxId}`)).status).toBe(204);
    await waitFor('its files to be gone', () => !existsSync(image));
  },
  timeoutMs,
);

/** Makes the file system of a sandbox's disk give up. */
async function failDisk(platform: TestPlatform, sandboxId: string): Promise<void> {
  const { dataDir } = platform.ready;
  const record = readFileSync(join(dataDir, 'node/sandboxes', sandboxId, 'record.json'), 'utf8');
  const { slot } = JSON.parse(record) as { slot: number };
  const runDir = readdirSync('/run/atoll')
    .map(name => join('/run/atoll', name))
    .find(path => existsSync(join(path, 'owner')) && readFileSync(join(path, 'owner'), 'utf8') === dataDir);
  const point = join(runDir ?? '', 'mounts', `s${slot}`);
  // Disks are mounted in the mount namespace of the node's helper.
  const holder = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .find(pid => mountinfoOf(pid).includes(` ${point} `));
  const done = await runToEnd(['python3', '-c', shutDown, `/proc/${holder}/root${point}`]);
  if (done.exitCode !== 0) throw new Error(done.stderr);
}

function mountinfoOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, 'utf8');
  } catch {
    return ''; // it has ended
  }
}

async function failedDisks(platform: TestPlatform): Promise<number> {
  const token = readFileSync(join(platform.ready.dataDir, 'metrics-token'), 'utf8').trim();
  const headers = { Authorization: `Bearer ${token}` };
  const text = await (await fetch(new URL('/metrics', platform.ready.url), { headers })).text();
  return Number(/^atoll_node_disk_failed{[^}]*} (\S+)$/m.exec(text)?.[1]);
}
