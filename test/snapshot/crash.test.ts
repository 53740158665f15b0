import { expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { detectCgroups } from '../../src/node/cgroup/cgroup.ts';
import { waitFor } from '../support/process.ts';

type Facts = { pid: number; dataDir: string; runDir: string; cgroup: string; lasting: number[] };

test('a platform that is killed in the middle of a pause leaves the sandbox running', async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'support/killed-platform.ts')], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const facts = JSON.parse(await new Response(child.stdout).text()) as Facts;
  const cgroups = detectCgroups();
  try {
    await child.exited;
    expect(child.signalCode).toBe('SIGKILL');
    // Its record was never written, so the sandbox counts. The next start removes the snapshot beside it.
    expect(existsSync(join(facts.dataDir, 'node/snapshots/pause/manifest.json'))).toBe(true);
    expect(readFileSync(`/proc/${facts.pid}/stat`, 'utf8')).not.toContain(') Z ');
    const file = `/proc/${facts.pid}/root/root/ticks`;
    // The program may not have reached its first one when it was stopped.
    const ticks = () =>
      existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean).map(Number) : [];
    const before = await waitFor('ticks', () => ticks().length || undefined);
    await waitFor('the sandbox to go on', () => ticks().length > before + 10);
    const seen = ticks();
    expect(seen).toEqual(Array.from(seen, (_, index) => index + 1));
    for (const pid of facts.lasting) expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toContain('TracerPid:\t0');
  } finally {
    process.kill(facts.pid, 'SIGKILL');
    await waitFor('the end of its processes', () => cgroups.processes(facts.cgroup).length === 0);
    await cgroups.remove(facts.cgroup);
    await Bun.$`umount ${facts.runDir}`;
    for (const dir of [facts.dataDir, facts.runDir]) rmSync(dir, { recursive: true, force: true });
  }
}, 120_000);
