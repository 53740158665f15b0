import { expect, test } from 'bun:test';
import { shell } from './support/process.ts';
import { makeMemoryCgroup } from './support/memory-cgroup.ts';
import { startAgent, usualInit, type TestAgent } from './support/test-agent.ts';

type Metrics = Record<
  | 'ts'
  | 'cpu_count'
  | 'cpu_used_pct'
  | 'mem_total'
  | 'mem_used'
  | 'mem_cache'
  | 'mem_total_mib'
  | 'mem_used_mib'
  | 'disk_used'
  | 'disk_total',
  number
>;

const metrics = async (agent: TestAgent) => (await (await fetch(`${agent.url}/metrics`)).json()) as Metrics;

test('metrics are the sandbox’s own, from its cgroup', async () => {
  await using cgroup = makeMemoryCgroup(192 << 20);
  await using agent = await startAgent({ cgroup: cgroup.path, init: { ...usualInit, cpuCount: 3, memoryBytes: 1 } });
  const before = await metrics(agent);
  expect(Math.abs(before.ts - Date.now() / 1000)).toBeLessThan(60);
  expect(before).toMatchObject({ mem_total: 192 << 20, mem_total_mib: 192, cpu_count: 3 });
  expect(before.mem_used).toBeGreaterThan(0);
  expect(before.mem_used + before.mem_cache).toBeLessThanOrEqual(192 << 20);
  expect(before.disk_total).toBeGreaterThan(0);
  expect(before.disk_used).toBeLessThanOrEqual(before.disk_total);
  expect(before.cpu_used_pct).toBeGreaterThanOrEqual(0);
  expect(before.cpu_used_pct).toBeLessThanOrEqual(100);
  await shell(agent, 'cat > /dev/null', { stdin: false });
  const held = await shell(
    agent,
    'python3 -c "import urllib.request; x = bytearray(60 << 20); print(urllib.request.urlopen(\'' +
      agent.url +
      '/metrics\').read().decode())"',
  );
  const during = JSON.parse(held.stdout) as Metrics;
  expect(during.mem_used - before.mem_used).toBeGreaterThan(50 << 20);
}, 60_000);

test('without a cgroup the limits of the platform are told', async () => {
  await using agent = await startAgent({ root: 'empty', init: { ...usualInit, cpuCount: 2, memoryBytes: 512 << 20 } });
  expect(await metrics(agent)).toMatchObject({ cpu_count: 2, mem_total: 512 << 20, mem_total_mib: 512, mem_used: 0 });
});

test('a process that is ended for want of memory says so, and the agent lives', async () => {
  await using cgroup = makeMemoryCgroup(160 << 20);
  await using agent = await startAgent({ cgroup: cgroup.path });
  const pid = agent.agentPid();
  const direct = await shell(agent, 'exec python3 -c "x = bytearray(400 << 20)"');
  expect(direct.end).toMatchObject({
    exitCode: -1,
    status: 'signal: killed',
    error: expect.stringContaining('out of memory'),
  });
  // The kernel ends the child; the shell reports it.
  const child = await shell(agent, 'python3 -c "x = bytearray(400 << 20)"; exit $?');
  expect(child.end).toMatchObject({
    exitCode: 137,
    status: 'exit status 137',
    error: expect.stringContaining('out of memory'),
  });
  // The command line compares a terminal's error: if it says a kill, the command line closes quietly.
  const terminal = await shell(agent, 'exec python3 -c "x = bytearray(400 << 20)"', {
    pty: { size: { cols: 80, rows: 24 } },
  });
  expect(terminal.end).toEqual({ exitCode: -1, status: 'signal: killed', error: 'signal: killed' });
  const own = await shell(agent, 'kill -9 $$');
  expect(own.end).toEqual({ exitCode: -1, status: 'signal: killed', error: 'signal: killed' });
  expect(agent.agentPid()).toBe(pid);
}, 60_000);
