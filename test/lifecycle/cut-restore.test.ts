import { expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readIfThere } from '../../src/base/small-file.ts';
import { detectCgroups } from '../../src/node/cgroup/cgroup.ts';
import { agentPort } from '../../src/protocol/agent.ts';
import { partOf } from '../parts/support/parts-of.ts';
import { runDirOf } from '../support/leaks.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';
import { criuOf } from './support/victims.ts';

const restoresMax = 20;

async function note(platform: TestPlatform, id: string, text?: string): Promise<string> {
  const body = new FormData();
  if (text !== undefined) body.append('file', new Blob([text]), 'note');
  const answer = await fetch(`${platform.ready.url}/files?path=note&username=user`, {
    method: text === undefined ? 'GET' : 'POST',
    headers: { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': String(agentPort) },
    ...(text === undefined ? {} : { body }),
  });
  expect(answer.status).toBe(200);
  return answer.text();
}

/** The installation's restores that have begun and are not known to be over. */
const restoresOf = (runDir: string) =>
  readdirSync(runDir).filter(name => name.startsWith('restore-') && name.endsWith('.conf'));

test('a sandbox whose resume from memory is cut off stays paused, with its files', async () => {
  await using platform = await startPlatform({ ATOLL_POOL_SIZE: '0' });
  const { dataDir } = platform.ready;
  const created = await platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 3600 });
  const { sandboxID: id } = (await created.json()) as { sandboxID: string };
  await note(platform, id, 'kept');
  const runDir = runDirOf(dataDir);
  const record = join(dataDir, 'node/sandboxes', id, 'record.json');
  const isRecordedAsRunning = () => {
    try {
      return (JSON.parse(readFileSync(record, 'utf8')) as { state: string }).state === 'running';
    } catch {
      return false;
    }
  };
  for (let left = restoresMax; ; left--) {
    if (left === 0) throw new Error('every restore was over before its kill');
    expect((await platform.api('POST', `/sandboxes/${id}/pause`, { memory: true })).status).toBe(204);
    // Its processes stand still for a while: it is restored without them.
    await platform.kill9();
    await platform.restart();
    const node = partOf(platform.pid(), 'node');
    const resumed = platform.api('POST', `/sandboxes/${id}/connect`, { timeout: 3600 });
    await waitFor('the record of the restore', isRecordedAsRunning);
    process.kill(node, 'SIGSTOP');
    const cut = restoresOf(runDir).length > 0;
    process.kill(node, cut ? 'SIGKILL' : 'SIGCONT');
    const { status } = await resumed;
    if (!cut) continue;
    expect(status).toBeGreaterThanOrEqual(500);
    break;
  }
  await waitFor('the sandbox to be paused', async () => {
    const answer = await platform.api('GET', `/sandboxes/${id}`).catch(() => undefined);
    return answer?.status === 200 && ((await answer.json()) as { state: string }).state === 'paused';
  });
  expect(restoresOf(runDir)).toEqual([]);
  const answer = await platform.api('POST', `/sandboxes/${id}/connect`, { timeout: 3600 });
  expect([answer.status, answer.headers.get('x-resumed-from')]).toEqual([201, 'filesystem']);
  expect(await note(platform, id)).toBe('kept');
  expect((await platform.api('DELETE', `/sandboxes/${id}`)).status).toBe(204);
}, 120_000);

const fieldOf = (pid: number, name: string) =>
  new RegExp(`^${name}:\\t(.*)$`, 'm').exec(readIfThere(`/proc/${pid}/status`) ?? '')?.[1] ?? '';
/** Whether a process is gone, or will be as soon as it could act again. */
const isKilled = (pid: number) => (Number.parseInt(fieldOf(pid, 'ShdPnd') || '100', 16) & 0x100) !== 0;

/**
 * Kills a node while one of its CRIU processes stands still, which can't notice by itself that the platform has gone.
 */
async function killedWithNode(criu: number, node: number): Promise<void> {
  const { version, freeze, isFrozen, thaw } = detectCgroups();
  const held = `/atoll-held-${process.pid}`;
  const directory = join('/sys/fs/cgroup', version === 'v1' ? 'freezer' : '', held);
  mkdirSync(directory);
  try {
    writeFileSync(join(directory, 'cgroup.procs'), String(criu));
    freeze(held);
    await waitFor('it to stand still', () => isFrozen(held));
    process.kill(node, 'SIGKILL');
    await waitFor('it to be killed', () => isKilled(criu));
  } finally {
    thaw(held);
    await waitFor('its end', () => readIfThere(join(directory, 'cgroup.procs')) === '');
    rmdirSync(directory);
  }
}

test('CRIU ends with the platform, and what it was about to bring back is still there', async () => {
  await using platform = await startPlatform({ ATOLL_POOL_SIZE: '0', ATOLL_FROZEN_SECONDS: '0' });
  const created = await platform.api('POST', '/sandboxes', { templateID: 'base', timeout: 3600 });
  const { sandboxID: id } = (await created.json()) as { sandboxID: string };
  const runDir = runDirOf(platform.ready.dataDir);
  const { processes } = detectCgroups();
  // What CRIU has made of the sandbox so far still belongs to CRIU.
  const isBegun = () => criuOf(platform).some(pid => processes(`/atoll${basename(runDir)}`).includes(pid));
  const connect = () => platform.api('POST', `/sandboxes/${id}/connect`, { timeout: 3600 });
  const node = partOf(platform.pid(), 'node');
  for (let left = restoresMax; ; left--) {
    if (left === 0) throw new Error('every restore was over before its kill');
    expect((await platform.api('POST', `/sandboxes/${id}/pause`, { memory: true })).status).toBe(204);
    const resumed = connect();
    const begun = await waitFor('a restore that has begun', isBegun, 1_000).catch(() => false);
    if (begun) process.kill(node, 'SIGSTOP');
    const criu = begun && criuOf(platform).find(pid => fieldOf(pid, 'NSpgid') === String(pid));
    if (criu) await killedWithNode(criu, node);
    else process.kill(node, 'SIGCONT');
    expect((await resumed).status).toBe(criu ? 503 : 201);
    if (criu) break;
  }
  await waitFor('the end of CRIU', () => criuOf(platform).length === 0);
  const answer = await waitFor('the sandbox to be there again', async () => {
    const again = await connect().catch(() => undefined);
    return again?.ok && again;
  });
  expect(answer.headers.get('x-resumed-from')).toBe('memory');
  expect(restoresOf(runDir)).toEqual([]);
  expect((await platform.api('DELETE', `/sandboxes/${id}`)).status).toBe(204);
}, 120_000);
