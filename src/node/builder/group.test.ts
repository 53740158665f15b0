import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBuilderGroups } from './group.ts';

let root = '';
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'atoll-groups-'))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Makes these files in a directory, which the kernel would provide. */
function kernelFiles(path: string, ...names: string[]): void {
  mkdirSync(path, { recursive: true });
  for (const name of names) writeFileSync(join(path, name), '');
}
const waitUntil = async (holds: () => boolean) => {
  while (!holds()) await Bun.sleep(2);
};
const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');
/** Removes a directory as the kernel does: the files that it provides do not hold it. */
function emptied(path: string): void {
  for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true });
}

test('version 2: all builders together have a limit, and their controllers are theirs', () => {
  kernelFiles(root, 'cgroup.controllers', 'cgroup.subtree_control');
  kernelFiles(join(root, 'builders'), 'cgroup.subtree_control', 'memory.max', 'memory.swap.max');
  createBuilderGroups('builders', 1024, root);
  for (const path of [['cgroup.subtree_control'], ['builders', 'cgroup.subtree_control']])
    expect(read(...path)).toBe('+memory +pids +cpu');
  expect(read('builders', 'memory.max')).toBe(`${2 ** 30}`);
  expect(read('builders', 'memory.swap.max')).toBe('0');
});

test('version 2: a builder’s group is its own, and tells when it had too little memory', async () => {
  kernelFiles(root, 'cgroup.controllers');
  const groups = createBuilderGroups('builders', 1024, root);
  const [group, another] = [groups.create(64), groups.create(64)];
  expect(group.directories).toHaveLength(1);
  expect(group.directories[0]).toMatch(/\/builders\/b[0-9a-f]+$/);
  expect(another.directories[0]).not.toBe(group.directories[0]!);
  const path = group.directories[0]!;
  expect(group.wasOutOfMemory()).toBe(false);
  writeFileSync(join(path, 'memory.events'), 'low 0\noom 3\noom_kill 0\n');
  expect(group.wasOutOfMemory()).toBe(false);
  writeFileSync(join(path, 'memory.events'), 'low 0\noom 1\noom_kill 1\n');
  expect(group.wasOutOfMemory()).toBe(true);
  emptied(path);
  await group.remove();
  expect(existsSync(path)).toBe(false);
  await group.remove();
  expect(readdirSync(join(root, 'builders'))).toHaveLength(1);
});

test('version 1: a group in each hierarchy that there is', async () => {
  kernelFiles(join(root, 'memory/builders'), 'memory.limit_in_bytes', 'memory.memsw.limit_in_bytes');
  kernelFiles(join(root, 'pids'));
  const groups = createBuilderGroups('builders', 1024, root);
  expect(read('memory/builders/memory.limit_in_bytes')).toBe(`${2 ** 30}`);
  expect(read('memory/builders/memory.memsw.limit_in_bytes')).toBe(`${2 ** 30}`);
  expect(readdirSync(root).sort()).toEqual(['memory', 'pids']);
  const group = groups.create(64);
  const paths = group.directories;
  expect(paths.map(path => path.slice(root.length).split('/')[1])).toEqual(['memory', 'pids']);
  writeFileSync(join(paths[0]!, 'memory.oom_control'), 'under_oom 0\noom_kill 2\n');
  expect(group.wasOutOfMemory()).toBe(true);
  paths.forEach(emptied);
  await group.remove();
  for (const name of ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'])
    rmSync(join(root, 'memory/builders', name));
  await groups.remove();
  expect([existsSync(join(root, 'memory/builders')), existsSync(join(root, 'pids/builders'))]).toEqual([false, false]);
});

test('what a crash has left is ended and removed, and the end waits for that', async () => {
  kernelFiles(root, 'cgroup.controllers');
  const left = join(root, 'builders', 'bcrashed');
  mkdirSync(left, { recursive: true });
  const program = Bun.spawn(['sleep', '60']);
  writeFileSync(join(left, 'cgroup.procs'), `${program.pid}\n`);
  const groups = createBuilderGroups('builders', 1024, root);
  const removed = groups.remove();
  await program.exited;
  expect(program.signalCode).toBe('SIGKILL');
  expect(existsSync(left)).toBe(true);
  emptied(left);
  await removed;
  expect(existsSync(join(root, 'builders'))).toBe(false);
});

test('builders of one team have a group together, with a part of the memory, while one of them runs', async () => {
  kernelFiles(root, 'cgroup.controllers');
  const groups = createBuilderGroups('builders', 1024, root);
  const placeOf = ({ directories: [path = ''] }: ReturnType<typeof groups.create>) => path;
  const [first, second, other, own] = [
    groups.create(64, 'a'),
    groups.create(64, 'a'),
    groups.create(64, 'b'),
    groups.create(64),
  ];
  const team = join(placeOf(first), '..');
  expect(join(placeOf(second), '..')).toBe(team);
  expect(join(placeOf(own), '..')).toBe(join(root, 'builders'));
  expect(new Set([team, join(placeOf(other), '..'), join(root, 'builders')]).size).toBe(3);
  emptied(placeOf(first));
  await first.remove();
  await first.remove();
  expect(existsSync(team)).toBe(true);
  emptied(placeOf(second));
  await second.remove();
  await waitUntil(() => !existsSync(team));
  // A new group does not meet the one that is being removed.
  expect(join(placeOf(groups.create(64, 'a')), '..')).not.toBe(team);
});

test('a team that takes all the memory it can loses its own builders, even if they are smaller', async () => {
  const name = `atoll-test-teams-${process.pid}`;
  const groups = createBuilderGroups(name, 200);
  const made: ReturnType<typeof groups.create>[] = [];
  const grow = 'import sys,time; kept=b"x"*(int(sys.argv[1])<<20); print("grown",flush=True); time.sleep(60)';
  const begin = (team: string, sizeMiB: number) => {
    const group = groups.create(200, team);
    made.push(group);
    const joining = `for group in "$@"; do echo 0 > "$group/cgroup.procs"; done; exec python3 -c '${grow}' ${sizeMiB}`;
    const program = Bun.spawn(['sh', '-c', joining, 'sh', ...group.directories], { stdout: 'pipe' });
    return { program, said: new Response(program.stdout).text(), group };
  };
  try {
    const memory = begin('honest', 30).group.directories.some(path => existsSync(join(path, 'memory.oom_control')));
    const isBounded = memory || made[0]?.directories.some(path => existsSync(join(path, 'memory.max')));
    if (!isBounded) return; // this machine bounds no memory here
    const hostile = Array.from({ length: 12 }, () => begin('hostile', 20));
    const ended = await Promise.race(hostile.map(async ({ program, group }) => (await program.exited, group)));
    expect(ended.wasOutOfMemory()).toBe(true);
    expect(made[0]?.wasOutOfMemory()).toBe(false);
  } finally {
    for (const group of made) await group.remove();
    await groups.remove();
  }
}, 60_000);

test('in the kernel’s own groups a builder has its bounds', async () => {
  // Only if this machine has such groups: the kernel then answers what was written.
  const name = `atoll-test-${process.pid}`;
  const groups = createBuilderGroups(name, 256);
  const group = groups.create(64);
  try {
    const joining = `for group in "$@"; do echo 0 > "$group/cgroup.procs"; done; exec sleep 60`;
    const program = Bun.spawn(['sh', '-c', joining, 'sh', ...group.directories]);
    for (const path of group.directories)
      while (!readFileSync(join(path, 'cgroup.procs'), 'utf8').includes(`${program.pid}\n`)) await Bun.sleep(2);
    const written = (...names: string[]) =>
      group.directories
        .flatMap(path => names.map(name => join(path, name)))
        .filter(path => existsSync(path))
        .map(path => readFileSync(path, 'utf8').trim());
    for (const bytes of written('memory.max', 'memory.limit_in_bytes')) expect(bytes).toBe(`${64 * 2 ** 20}`);
    for (const threads of written('pids.max')) expect(threads).toBe('64');
    await group.remove();
    expect(group.directories.filter(path => existsSync(path))).toEqual([]);
    await program.exited;
  } finally {
    await group.remove();
    await groups.remove();
  }
});
