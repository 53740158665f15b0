import { expect, test } from 'bun:test';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killIfThere } from '../../src/base/if-there.ts';
import { detectCgroups } from '../../src/node/cgroup/cgroup.ts';
import { agentPort } from '../../src/protocol/agent.ts';
import { holdingsOf } from '../support/leaks.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

const registry = '/run/atoll';
/** The numbers of the installations on a data directory: others come and go meanwhile. */
const numbersOf = (dataDir: string) =>
  readdirSync(registry).filter(name => {
    const owner = join(registry, name, 'owner');
    return /^\d+$/.test(name) && existsSync(owner) && readFileSync(owner, 'utf8') === dataDir;
  });

async function run(platform: TestPlatform, id: string, command: string): Promise<string> {
  const message = Buffer.from(JSON.stringify({ process: { cmd: '/bin/sh', args: ['-c', command] }, stdin: false }));
  const envelope = Buffer.concat([Buffer.alloc(5), message]);
  envelope.writeUInt32BE(message.length, 1);
  const headers = {
    'E2b-Sandbox-Id': id,
    'E2b-Sandbox-Port': String(agentPort),
    'Content-Type': 'application/connect+json',
    'Connect-Protocol-Version': '1',
  };
  const answer = await fetch(`${platform.ready.url}/process.Process/Start`, {
    method: 'POST',
    headers,
    body: envelope,
  });
  const text = await answer.text();
  return [...text.matchAll(/"stdout":"([^"]*)"/g)]
    .map(match => Buffer.from(match[1] ?? '', 'base64').toString())
    .join('');
}

/**
 * Everything that a reboot takes: the platform, every process of its sandboxes and with them their namespaces, mounts
 * and links, the cgroups, the packet rules, /run, and what was found out since the last boot. Afterwards, somebody else
 * has the installation's place on the machine.
 */
async function reboot(platform: TestPlatform, other: string): Promise<void> {
  const { dataDir } = platform.ready;
  const [number] = numbersOf(dataDir);
  if (number === undefined) throw new Error(`nobody owns ${dataDir}`);
  await platform.kill9();
  const cgroups = detectCgroups();
  const group = `/atoll${number}`;
  await waitFor('the end of every process', () => {
    for (const pid of cgroups.processes(group)) killIfThere(pid);
    for (const name of cgroups.list(group)) cgroups.thaw(`${group}/${name}`);
    return cgroups.processes(group).length === 0;
  });
  await waitFor(
    'the links to be gone',
    () => !readdirSync('/sys/class/net').some(name => name.startsWith(`at${number}-`)),
  );
  await cgroups.remove(group);
  await Bun.$`nft delete table inet atoll${number}`;
  const runDir = join(registry, number);
  writeFileSync(join(other, 'lock'), '');
  const takeOver =
    'if mountpoint -q "$1"; then umount "$1"; fi; rm -r "$1" && mkdir "$1" && printf %s "$2" > "$1/owner"';
  await Bun.$`flock ${join(registry, 'lock')} sh -c ${takeOver} sh ${runDir} ${other}`;
  rmSync(join(dataDir, 'node/memory-keeping.json'));
  const left = holdingsOf(dataDir);
  expect({ ...left, files: [] }).toEqual({
    processes: [],
    mounts: [],
    networkNamespaces: [],
    links: [],
    nftTables: [],
    cgroups: [],
    loopDevices: [],
    files: [],
  });
}

/** The data directory of an installation that takes another's place. */
function somebodyElse(cleanup: AsyncDisposableStack): string {
  const other = mkdtempSync(join(tmpdir(), 'atoll-other-'));
  cleanup.defer(() => {
    rmSync(other, { recursive: true });
    for (const number of numbersOf(other)) rmSync(join(registry, number), { recursive: true });
  });
  return other;
}

/** Unit of what disks of sandboxes are made of (src/node/disks/format-image.ts). */
const blockBytes = 4096;

/**
 * Damages the inode of a path as a loss of power in the middle of a write may do, in an image that is mounted nowhere
 * and considers itself whole. The kernel refuses to read it, because its checksum belongs to another inode.
 */
async function damage(image: string, path: string): Promise<void> {
  const place = /located at block (\d+), offset (0x[0-9a-f]+)/.exec(
    await Bun.$`debugfs -R ${`imap ${path}`} ${image}`.text(),
  );
  if (!place) throw new Error(`${image} has no ${path}`);
  const at = Number(place[1]) * blockBytes + Number(place[2]);
  const file = openSync(image, 'r+');
  const bytes = Buffer.alloc(32);
  readSync(file, bytes, 0, bytes.length, at);
  writeSync(
    file,
    bytes.map(byte => byte ^ 0xff),
    0,
    bytes.length,
    at,
  );
  closeSync(file);
  const { exitCode, stdout } = await Bun.$`e2fsck -p ${image}`.nothrow().quiet();
  expect([exitCode, stdout.toString()]).toEqual([0, expect.stringContaining(': clean')]);
}

test('after a reboot of the host every sandbox resumes, and the answer says from what', async () => {
  await using cleanup = new AsyncDisposableStack();
  const other = somebodyElse(cleanup);
  const platform = cleanup.use(await startPlatform({ ATOLL_POOL_SIZE: '0' }));
  const create = async () => {
    const { sandboxID } = (await (
      await platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 3600 })
    ).json()) as { sandboxID: string };
    await run(
      platform,
      sandboxID,
      'echo $$ > /root/file 2>/dev/null || echo kept > ~/file; echo mine > /dev/shm/note; (setsid sleep 86398 >/dev/null 2>&1 &)',
    );
    return sandboxID;
  };
  const pause = async (id: string, memory: boolean) =>
    expect((await platform.api('POST', `/sandboxes/${id}/pause`, { memory })).status).toBe(204);
  // One whose processes stand still when the power goes, one that has ended before, one with only its files, and one
  // that runs.
  const [standing, ended, files, running] = [await create(), await create(), await create(), await create()];
  await pause(ended, true);
  await platform.kill9();
  await platform.restart();
  expect(
    (await platform.api('POST', `/sandboxes/${ended}/connect`, { timeout: 3600 })).headers.get('x-resumed-from'),
  ).toBe('memory');
  await pause(ended, true);
  await pause(files, false);
  await pause(standing, true);
  const boot = await run(platform, running, 'cat /proc/sys/kernel/random/boot_id');

  await reboot(platform, other);
  await platform.restart();
  const listed = (await (await platform.api('GET', '/v2/sandboxes')).json()) as { sandboxID: string; state: string }[];
  expect(new Map(listed.map(({ sandboxID, state }) => [sandboxID, state]))).toEqual(
    new Map([standing, ended, files, running].map(id => [id, 'paused'])),
  );
  for (const [id, from] of [
    [standing, 'memory'],
    [ended, 'memory'],
    [files, 'filesystem'],
    [running, 'filesystem'],
  ] as const) {
    const answer = await platform.api('POST', `/sandboxes/${id}/connect`, { timeout: 3600 });
    expect([answer.status, answer.headers.get('x-resumed-from')]).toEqual([201, from]);
    const seen = await run(
      platform,
      id,
      'cat ~/file /root/file 2>/dev/null | wc -l; pgrep -c -f "^sleep 86398"; cat /dev/shm/note 2>/dev/null; date +%s; hostname',
    );
    const lines = seen.trim().split('\n');
    const seconds = Number(lines.at(-2));
    expect(Math.abs(seconds - Date.now() / 1000)).toBeLessThan(30);
    expect(lines.filter((_, index) => index !== lines.length - 2)).toEqual(
      from === 'memory' ? ['1', '1', 'mine', id] : ['1', '0', id],
    );
    expect(await run(platform, id, 'cat /proc/sys/kernel/random/boot_id')).not.toBe(boot);
    expect((await platform.api('DELETE', `/sandboxes/${id}`)).status).toBe(204);
  }
}, 120_000);

test('a sandbox whose disk a loss of power has damaged resumes with what is whole of its files', async () => {
  await using cleanup = new AsyncDisposableStack();
  const other = somebodyElse(cleanup);
  const platform = cleanup.use(await startPlatform({ ATOLL_POOL_SIZE: '0' }));
  const created = await platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 3600 });
  const { sandboxID } = (await created.json()) as { sandboxID: string };
  // A boot empties /run, which is impossible if it can't be read.
  await run(platform, sandboxID, 'echo kept > ~/file; touch /run/left; sync');
  await reboot(platform, other);
  const kept = join(platform.ready.dataDir, 'node/sandboxes', sandboxID, 'kept');
  await damage(join(kept, 'disk.img'), '/upper/run');
  await platform.restart();
  const connect = async () => {
    const answer = await platform.api('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 3600 });
    return [answer.status, answer.headers.get('x-resumed-from')];
  };
  expect(await connect()).toEqual([201, 'filesystem']);
  expect(await run(platform, sandboxID, 'cat ~/file; echo more > ~/more && sync && cat ~/more')).toBe('kept\nmore\n');
  expect(platform.log()).toContain('the disk of a sandbox is repaired');

  // As earlier versions left one: it got its checksums as it was.
  await run(platform, sandboxID, 'touch /run/left');
  expect((await platform.api('POST', `/sandboxes/${sandboxID}/pause`, { memory: false })).status).toBe(204);
  await damage(join(kept, 'disk.img'), '/upper/run');
  await Bun.$`${join(import.meta.dir, '../../dist/helper')} seal ${kept}`;
  expect(await connect()).toEqual([500, null]);
  expect(await connect()).toEqual([201, 'filesystem']);
  expect(await run(platform, sandboxID, 'cat ~/file ~/more')).toBe('kept\nmore\n');
}, 120_000);

test('memory whose disk a loss of power has damaged is not gone on with: the files are', async () => {
  await using cleanup = new AsyncDisposableStack();
  const other = somebodyElse(cleanup);
  const platform = cleanup.use(await startPlatform({ ATOLL_POOL_SIZE: '0' }));
  const create = async () => {
    const created = await platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 3600 });
    const { sandboxID } = (await created.json()) as { sandboxID: string };
    await run(platform, sandboxID, 'echo kept > ~/file; touch /run/left; echo mine > /dev/shm/note');
    expect((await platform.api('POST', `/sandboxes/${sandboxID}/pause`, { memory: true })).status).toBe(204);
    return sandboxID;
  };
  const [damaged, whole] = [await create(), await create()];
  await reboot(platform, other);
  // The power went while the kernel wrote the last of the disk, before there were checksums.
  const keptOf = (id: string) => join(platform.ready.dataDir, 'node/sandboxes', id, 'kept');
  for (const id of [damaged, whole]) rmSync(join(keptOf(id), 'checksums'), { force: true });
  await damage(join(keptOf(damaged), 'disk.img'), '/upper/run');
  await platform.restart();
  for (const [id, from] of [
    [damaged, 'filesystem'],
    [whole, 'memory'],
  ] as const) {
    const answer = await platform.api('POST', `/sandboxes/${id}/connect`, { timeout: 3600 });
    expect([answer.status, answer.headers.get('x-resumed-from')]).toEqual([201, from]);
    expect(await run(platform, id, 'cat ~/file; cat /dev/shm/note 2>/dev/null || true')).toBe(
      from === 'memory' ? 'kept\nmine\n' : 'kept\n',
    );
  }
  expect(platform.log()).toContain('the memory of a paused sandbox is removed: its disk is damaged');
}, 120_000);
