import { expect, test } from 'bun:test';
import { attach, finish, outputUntil, shell, start, startedPid } from './support/process.ts';
import { unary, unaryError } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';
import { addUser, as } from './support/users.ts';

const token = 'a token';
const agent = sharedAgent({ init: { accessToken: token, defaultUser: 'root', envVars: { KEPT: 'yes' } } });
const access = { 'x-access-token': token };

async function killAgent(): Promise<void> {
  const before = agent.agentPid();
  process.kill(before, 'SIGKILL');
  while (agent.agentPid() === before || agent.agentPid() === 0) await Bun.sleep(1);
  await agent.healthy();
}

type Listed = { pid: number; tag?: string; config: { cmd: string; args?: string[]; envs?: Record<string, string> } };
const listed = async () =>
  ((await unary(agent, 'process.Process/List', {}, access)).body['processes'] ?? []) as Listed[];

test('an agent that is killed is back, with the rules that it had', async () => {
  await killAgent();
  expect((await fetch(`${agent.url}/envs`)).status).toBe(401);
  expect(await (await fetch(`${agent.url}/envs`, { headers: access })).json()).toEqual({ KEPT: 'yes' });
  expect((await shell(agent, 'echo $KEPT', { headers: access })).stdout).toBe('yes\n');
});

test('processes outlive it: they are listed, attached to, and their end is told', async () => {
  const events = await start(
    agent,
    {
      process: { cmd: '/bin/sh', args: ['-c', 'while [ ! -e /tmp/go ]; do sleep 0.02; done; exit 42'] },
      tag: 'survivor',
    },
    access,
  );
  const pid = await startedPid(events);
  await killAgent();
  expect(await listed()).toEqual([
    expect.objectContaining({ pid, tag: 'survivor', config: expect.objectContaining({ cmd: '/bin/sh' }) }),
  ]);
  const attached = await attach(agent, { tag: 'survivor' }, access);
  expect(await startedPid(attached)).toBe(pid);
  await Bun.write(agent.path('/tmp/go'), '');
  expect((await finish(attached)).end).toEqual({
    exitCode: 42,
    exited: true,
    status: 'exit status 42',
    error: 'exit status 42',
  });
  expect(await listed()).toEqual([]);
});

test('they can be signalled, but their input is gone', async () => {
  const events = await start(agent, { process: { cmd: '/bin/sleep', args: ['1000'] }, stdin: true }, access);
  const pid = await startedPid(events);
  await killAgent();
  expect(
    await unaryError(agent, 'process.Process/SendInput', { process: { pid }, input: { stdin: 'eA==' } }, access),
  ).toBe('500 internal');
  const attached = await attach(agent, { pid }, access);
  await unary(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGTERM' }, access);
  expect((await finish(attached)).end?.status).toBe('signal: terminated');
});

test('a deadline is kept, also by the next agent', async () => {
  const events = await start(
    agent,
    { process: { cmd: '/bin/sleep', args: ['1000'] }, tag: 'limited' },
    { ...access, 'connect-timeout-ms': '1000' },
  );
  await startedPid(events);
  await killAgent();
  const attached = await attach(agent, { tag: 'limited' }, access);
  expect((await finish(attached)).end?.status).toBe('signal: killed');
});

test('a process whose command is longer than its record is found all the same', async () => {
  const script = `exec sleep 1000 ${'#'.repeat(40_000)}`;
  const events = await start(agent, { process: { cmd: '/bin/sh', args: ['-c', script] }, tag: 'long' }, access);
  const pid = await startedPid(events);
  await killAgent();
  expect(await listed()).toEqual([{ pid, tag: 'long', config: { cmd: '/bin/sh', args: ['…'], envs: {} } }]);
  const attached = await attach(agent, { tag: 'long' }, access);
  await unary(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' }, access);
  expect((await finish(attached)).end?.status).toBe('signal: killed');
});

test('the end of one that ended while there was no agent is told', async () => {
  const events = await start(agent, { process: { cmd: '/bin/sh', args: ['-c', 'sleep 0.1; exit 13'] } }, access);
  const pid = await startedPid(events);
  // A stopped init can't start another agent until the process has ended too.
  process.kill(agent.initPid, 'SIGSTOP');
  process.kill(agent.agentPid(), 'SIGKILL');
  // A window in which the process may end: also where it has not, its end is told.
  await Bun.sleep(300);
  process.kill(agent.initPid, 'SIGCONT');
  await agent.healthy();
  expect((await finish(await attach(agent, { pid }, access))).end?.exitCode).toBe(13);
});

test('an agent that is stopped goes on', async () => {
  process.kill(agent.agentPid(), 'SIGSTOP');
  expect((await fetch(`${agent.url}/health`)).status).toBe(204);
});

test('killed again and again, it comes back each time', async () => {
  for (let time = 0; time < 6; time++) await killAgent();
  expect((await shell(agent, 'echo here', { headers: access })).stdout).toBe('here\n');
});

test('while no agent runs, nobody but root can take its port', async () => {
  addUser(agent, 'thief', 4700);
  const steal = `
import socket, time, sys
end = time.time() + 600
tries = 0
while time.time() < end:
    for options in ([], [socket.SO_REUSEADDR], [socket.SO_REUSEPORT]):
        for family, address in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
            s = socket.socket(family)
            for option in options: s.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                s.bind((address, ${agent.port})); s.listen(); print('stolen'); sys.exit()
            except OSError: tries += 1
            finally: s.close()
    open('/tmp/trying', 'w').close()
print('failed', tries > 100)`;
  const events = await start(
    agent,
    { process: { cmd: 'python3', args: ['-c', steal] } },
    { ...access, ...as('thief') },
  );
  await startedPid(events);
  while (!(await Bun.file(agent.path('/tmp/trying')).exists())) await Bun.sleep(10);
  const pid = await startedPid(await attach(agent, { pid: (await listed())[0]?.pid ?? 0 }, access));
  await killAgent();
  // A window for the thief, who tries all the time.
  await Bun.sleep(200);
  expect((await fetch(`${agent.url}/envs`)).status).toBe(401);
  // Its output was lost with the agent; with the port, it would have ended at once.
  expect((await listed()).map(one => one.pid)).toContain(pid);
  await unary(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' }, access);
});

test('orphans are reaped', async () => {
  await shell(agent, 'for i in 1 2 3 4 5; do (sleep 0.05 &) ; done', { headers: access });
  const zombies = async () => (await shell(agent, 'ps -eo stat= | grep -c ^Z', { headers: access })).stdout.trim();
  while ((await zombies()) !== '0') await Bun.sleep(20);
  const running = await start(
    agent,
    { process: { cmd: '/bin/sh', args: ['-c', '(exec sleep 0.2 &) ; echo done; exec sleep 1000'] } },
    access,
  );
  const pid = await startedPid(running);
  await outputUntil(running, 'done');
  while ((await shell(agent, 'pgrep -c "^sleep$"', { headers: access })).stdout.trim() !== '1') await Bun.sleep(20);
  expect(await zombies()).toBe('0');
  await unary(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' }, access);
});

test('an ordinary user can neither read nor disturb the agent', async () => {
  const as4701 = { ...access, ...as('4701') };
  const pids = `${await Promise.resolve(agent.agentPid())}`;
  expect(pids).not.toBe('0');
  const script =
    'A=$(pgrep -of "agent[/]agent"); kill -9 $A 2>&1; kill -9 1 2>&1; cat /proc/$A/environ /proc/$A/fd/3 /proc/1/fd/3 2>&1 | head -c 300; tr "\\0" " " < /proc/$A/cmdline; tr "\\0" " " < /proc/1/cmdline; echo x 2>&1 > /.agent/init';
  const { stdout, stderr } = await shell(agent, script, { headers: as4701 });
  expect(stdout + stderr).not.toContain(agent.controlToken);
  expect(stdout + stderr).not.toContain(token);
  expect(stdout).toContain('not permitted');
  expect((await shell(agent, 'echo alive', { headers: access })).stdout).toBe('alive\n');
});

test('root finds neither token in command lines or environments, and can not write to the agent’s files', async () => {
  const script =
    'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n"; for f in /.agent/init /.agent/agent /.agent/new /proc/1/exe; do (echo x > $f) 2>&1; done';
  const { stdout } = await shell(agent, script, { headers: access });
  expect(stdout).not.toContain(agent.controlToken);
  expect(stdout.match(/Read-only file system|Text file busy/g)?.length).toBeGreaterThanOrEqual(4);
});

test('asked to end, init ends everything', async () => {
  const { startAgent } = await import('./support/test-agent.ts');
  await using other = await startAgent();
  const events = await start(other, {
    process: {
      cmd: '/bin/sh',
      args: ['-c', 'trap "echo asked > /proc/1/root/tmp/asked; exit" TERM; echo ready; while :; do sleep 0.02; done'],
    },
  });
  await startedPid(events);
  await outputUntil(events, 'ready');
  const root = other.path('/tmp');
  const init = other.initPid;
  process.kill(init, 'SIGTERM');
  await expect(finish(events)).rejects.toThrow();
  while (await Bun.file(`/proc/${init}/status`).exists()) await Bun.sleep(10);
  expect(root).toContain(String(init));
});
