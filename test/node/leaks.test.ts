import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { findRunsc } from '../../src/node/drivers/gvisor/find-runsc.ts';
import { testUnless } from '../support/skip.ts';
import { waitFor } from '../support/process.ts';
import { startTestNode, type TestNode } from './support/test-node.ts';

/** Creates and kills, several at a time. */
const cyclesOf = { crun: 200, gvisor: 8 };
/** gVisor occupies a whole processor while it starts. */
const atOnce = { crun: 4, gvisor: availableParallelism() };

/** Everything on the host that sandboxes consist of, as far as it belongs to this installation. */
function traces(it: TestNode) {
  const helperMounts = readFileSync(`/proc/${it.node.helperPid}/mountinfo`, 'utf8')
    .split('\n')
    .map(line => line.split(' ')[4]);
  const containers = readdirSync('/sys/fs/cgroup', { recursive: true, encoding: 'utf8' }).filter(path =>
    path.includes(`atoll${it.node.installation}/`),
  );
  return {
    mounts: helperMounts.filter(path => path?.startsWith(it.node.runDir) || path?.startsWith(it.dataDir)).sort(),
    cgroups: containers.sort(),
    links: readdirSync('/sys/class/net').filter(name => name.startsWith(`at${it.node.installation}-`)),
    loops: readdirSync('/sys/block').filter(
      name => name.startsWith('loop') && backingFile(name).startsWith(it.dataDir),
    ),
    files: readdirSync(join(it.dataDir, 'node'), { recursive: true, encoding: 'utf8' })
      .filter(path => !/^(layers|agents|logs|metrics|sandboxes-spare)\//.test(path))
      .sort(),
    runtimes: readdirSync(it.node.runDir, { recursive: true, encoding: 'utf8' })
      .filter(path => /^(runtime|gvisor|boot-ids)\//.test(path))
      .sort(),
    processes: readdirSync('/proc').filter(name => /^\d+$/.test(name) && usesSandboxIds(name, it.node.installation)),
  };
}

const openFiles = () => readdirSync('/proc/self/fd').length;
/** The ways out are the machine's own links, and other programs' links come and go. */
const waysOut = /set ways_out \{.*?\n\t\}/s;
const rulesOf = async (it: TestNode) => {
  const rules = await Bun.$`nft list table inet atoll${it.node.installation}`.text();
  expect(rules).toMatch(waysOut);
  return rules.replace(waysOut, '');
};

function backingFile(loop: string): string {
  try {
    return readFileSync(`/sys/block/${loop}/loop/backing_file`, 'utf8');
  } catch {
    return '';
  }
}

function usesSandboxIds(pid: string, installation: number): boolean {
  const first = 0x7000_0000 + installation * 1024 * 65_536;
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const uid = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
    // A process that only waits for the host's first process to reap it has ended.
    return !/^State:\s+[ZX]/m.test(status) && uid >= first && uid < first + 1024 * 65_536;
  } catch {
    return false;
  }
}

const runsc = findRunsc(join(import.meta.dir, '../../dist/runsc'));

test('many creates and kills on crun leave nothing behind', () => leavesNothing('crun'), 300_000);
testUnless(runsc.found ? undefined : runsc.reason)(
  'many creates and kills on gVisor leave nothing behind',
  () => leavesNothing('gvisor'),
  300_000,
);

async function leavesNothing(driver: keyof typeof cyclesOf): Promise<void> {
  const it = await startTestNode({ poolSize: 0, driver });
  try {
    const cycle = async () => it.node.protocol.kill(await it.node.protocol.create(it.request()));
    await cycle(); // what is made once for all sandboxes is there from now on
    await waitFor('what it held to be gone', () => traces(it).files.every(path => !path.startsWith('sandboxes/')));
    const before = traces(it);
    const filesBefore = openFiles();
    const rules = await rulesOf(it);
    let left = cyclesOf[driver];
    await Promise.all(
      Array.from({ length: atOnce[driver] }, async () => {
        while (left-- > 0) await cycle();
      }),
    );
    // A sandbox's resources are removed after its kill was answered.
    await waitFor('everything to be gone', () => Bun.deepEquals(traces(it), before)).catch(() => {});
    expect(traces(it)).toEqual(before);
    // In between, the node looks at its host, which opens a file for a moment.
    await waitFor('open files to be no more than before', () => openFiles() <= filesBefore);
    expect(await rulesOf(it)).toBe(rules);
  } finally {
    await it.dispose();
  }
}

test('what can’t be removed at a start is removed later, and nobody waits for it', async () => {
  const it = await startTestNode();
  await using _ = { [Symbol.asyncDispose]: () => it.dispose() };
  // In place of a slot's disk, something that can't be removed like one.
  const leftover = join(it.dataDir, 'node/disks/s5.img');
  mkdirSync(leftover);
  await it.restart();
  expect(it.node.found).toMatchObject({ removed: 1 });
  expect(existsSync(leftover)).toBe(true);
  const sandbox = await it.node.protocol.create(it.request());
  await it.node.protocol.kill(sandbox);
  rmdirSync(leftover);
  writeFileSync(leftover, '');
  await waitFor('the leftover to be removed', () => !existsSync(leftover));
}, 60_000);
