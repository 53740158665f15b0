import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd, waitFor } from '../support/process.ts';
import { pythonTimeoutMs, pythonWithSdk } from '../support/python.ts';
import { testUnless } from '../support/skip.ts';

// Sandboxes of a real platform whose agent was stopped, together with the sandbox's first process, which would make it
// continue.

const python = await pythonWithSdk();

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
}, 300_000);
afterAll(() => platform[Symbol.asyncDispose]());

const create = async (body: object = {}) => {
  const answer = await platform.api('POST', '/v2/sandboxes', { templateID: 'base', timeout: 600, ...body });
  return ((await answer.json()) as { sandboxID: string }).sandboxID;
};
const pause = async (id: string, body: object = {}) => {
  const answer = await platform.api('POST', `/sandboxes/${id}/pause`, body);
  return answer.status === 204 ? { status: 204 } : { status: answer.status, ...((await answer.json()) as object) };
};
const connect = async (id: string, body: object = {}) => {
  const answer = await platform.api('POST', `/v2/sandboxes/${id}/connect`, body);
  const { code, error_code } = (await answer.json()) as { code?: number; error_code?: string };
  return { status: answer.status, from: answer.headers.get('x-resumed-from'), code, error_code };
};
const detail = async (id: string) => (await (await platform.api('GET', `/sandboxes/${id}`)).json()) as object;

function processesBelow(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  return [pid, ...children.flatMap(child => processesBelow(Number(child)))];
}
function signal(id: string, name: 'SIGSTOP' | 'SIGCONT'): void {
  const path = join(platform.ready.dataDir, 'node/sandboxes', id, 'record.json');
  const { pid } = JSON.parse(readFileSync(path, 'utf8')) as { pid: number };
  for (const each of processesBelow(pid)) process.kill(each, name);
}

test('a pause says whether the agent answered; if not, its memory is refused, and the files boot', async () => {
  const answering = await create();
  expect(await pause(answering)).toEqual({ status: 204 });
  expect(await detail(answering)).not.toHaveProperty('envdUnresponsiveAtPause');
  expect(await connect(answering)).toMatchObject({ status: 201, from: 'memory' });

  const id = await create();
  signal(id, 'SIGSTOP');
  expect(await pause(id)).toEqual({ status: 204 });
  const marked = { state: 'paused', pauseMode: 'full', envdUnresponsiveAtPause: true };
  expect(await detail(id)).toMatchObject(marked);
  const list = (await (await platform.api('GET', '/v2/sandboxes?state=paused')).json()) as { sandboxID: string }[];
  expect(list.find(({ sandboxID }) => sandboxID === id)).toMatchObject(marked);
  const refused = { status: 409, code: 409, error_code: 'sandbox_snapshot_guest_agent_unresponsive' };
  expect(await connect(id)).toMatchObject(refused);
  expect((await platform.api('POST', `/sandboxes/${id}/resume`, {})).status).toBe(409);
  // The node says so again after a restart of the platform.
  await platform.stop();
  await platform.restart();
  expect(await connect(id)).toMatchObject(refused);
  expect(await connect(id, { memory: false })).toMatchObject({ status: 201, from: 'filesystem' });
  expect(await detail(id)).not.toHaveProperty('envdUnresponsiveAtPause');
  expect(await pause(id)).toEqual({ status: 204 });
  expect(await detail(id)).not.toHaveProperty('envdUnresponsiveAtPause');
  expect(await connect(id)).toMatchObject({ status: 201, from: 'memory' });
}, 120_000);

test('a pause that needs the agent is refused, and the sandbox runs on', async () => {
  // Each waits for a silent agent, on its own sandbox: so all run at the same time.
  const bodies = [{ requireHealthyGuest: true }, { memory: false }, { memory: false, requireHealthyGuest: true }];
  await Promise.all(
    bodies.map(async body => {
      const id = await create();
      signal(id, 'SIGSTOP');
      expect(await pause(id, body)).toMatchObject({ status: 503, message: expect.stringContaining('agent') });
      expect(await detail(id)).toMatchObject({ state: 'running' });
      signal(id, 'SIGCONT');
      expect(await pause(id, { memory: false })).toEqual({ status: 204 });
      expect(await detail(id)).toMatchObject({ pauseMode: 'filesystem' });
    }),
  );
}, 120_000);

test('an automatic pause marks it too, and traffic does not wake it', async () => {
  const id = await create({ autoPause: true, autoResume: { enabled: true } });
  signal(id, 'SIGSTOP');
  expect((await platform.api('POST', `/sandboxes/${id}/timeout`, { timeout: 0 })).status).toBe(204);
  await waitFor('the pause', async () => 'pauseMode' in (await detail(id)), 60_000);
  expect(await detail(id)).toMatchObject({ envdUnresponsiveAtPause: true });
  const answer = await fetch(platform.ready.url, { headers: { Host: `8000-${id}.${platform.ready.domain}` } });
  expect(answer.status).toBe(502);
  expect(await detail(id)).toMatchObject({ state: 'paused' });
}, 120_000);

const program = `
import os
from e2b import GuestUnresponsiveException, Sandbox
id = os.environ["SANDBOX"]
assert Sandbox.get_info(id).envd_unresponsive_at_pause is True
try:
    Sandbox.connect(id)
    raise AssertionError("it was restored")
except GuestUnresponsiveException as error:
    assert error.status_code == 409, error
sandbox = Sandbox.connect(id, on_resume="reboot")
assert sandbox.commands.run("echo here").stdout == "here\\n"
assert sandbox.get_info().envd_unresponsive_at_pause is None
sandbox.kill()
`;
testUnless('missing' in python ? python.missing : undefined)(
  'the PyPI client reads it, and boots such a sandbox',
  async () => {
    if ('missing' in python) throw new Error(python.missing);
    const id = await create();
    signal(id, 'SIGSTOP');
    expect(await pause(id)).toEqual({ status: 204 });
    const env = { ...platform.env, SANDBOX: id };
    const { exitCode, stderr } = await runToEnd([python.program, '-c', program], { env });
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
  },
  pythonTimeoutMs,
);
