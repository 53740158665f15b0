import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { budgetsOf } from './budgets.ts';
import { groupsOf, makePartGroups } from './control-groups.ts';

const own = groupsOf(process.pid);
let root: string;
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'atoll-groups-'))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Files that the kernel puts into a new group. */
const filesOf = { memory: ['memory.limit_in_bytes'], pids: ['pids.max'] } as const;
function prepare(group: string, files: readonly string[]): void {
  mkdirSync(join(root, group), { recursive: true });
  for (const file of files) writeFileSync(join(root, group, file), '');
}
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const budgets = { api: { memoryBytes: 1000, tasksMax: 7 } };

test('version 1 has a group for each part in each existing hierarchy, and one for the weight of all', async () => {
  prepare(`memory/${own}/api`, filesOf.memory);
  prepare(`cpu/${own}`, ['cpu.shares']);
  prepare(`cpu/${groupsOf(9_999_999)}`, []);
  const groups = makePartGroups(budgets, root);
  expect(groups.joinFiles('api')).toEqual([join(root, 'memory', own, 'api/tasks'), join(root, 'cpu', own, 'tasks')]);
  expect(read(`memory/${own}/api/memory.limit_in_bytes`)).toBe('1000');
  expect(existsSync(join(root, 'pids'))).toBe(false);
  expect(readdirSync(join(root, 'cpu'))).toEqual([own]);
  expect(read(`cpu/${own}/cpu.shares`)).toBe('20480');
  // The kernel's own file disappears with the group.
  rmSync(join(root, 'cpu', own, 'cpu.shares'));
  await groups[Symbol.asyncDispose]();
  expect(readdirSync(join(root, 'cpu'))).toEqual([]);
});

test('version 2 has one group for each part, which gets the controllers', () => {
  prepare('.', ['cgroup.controllers', 'cgroup.subtree_control']);
  prepare(own, ['cgroup.subtree_control', 'cpu.weight']);
  prepare(`${own}/api`, ['memory.max', 'pids.max']);
  const groups = makePartGroups(budgets, root);
  expect(groups.joinFiles('api')).toEqual([join(root, own, 'api/cgroup.procs')]);
  expect(read('cgroup.subtree_control')).toBe('+memory +pids +cpu');
  expect([read(`${own}/cgroup.subtree_control`), read(`${own}/cpu.weight`)]).toEqual(['+memory +pids', '2000']);
  expect(['memory.max', 'pids.max'].map(file => read(`${own}/api/${file}`))).toEqual(['1000', '7']);
});

test('groups of supervisors that are gone are removed at the next start, and its own at its end', async () => {
  // No process ID is above the kernel's maximum (2^22). Nobody here can tell which processes of another namespace are
  // gone.
  const others = ['atoll-parts-1-9999999', groupsOf(1), 'other-9999999'].sort();
  for (const name of [groupsOf(9_999_999), ...others]) prepare(`memory/${name}/api`, []);
  const groups = makePartGroups(budgets, root);
  expect(readdirSync(join(root, 'memory')).sort()).toEqual([own, ...others].sort());
  await groups[Symbol.asyncDispose]();
  expect(readdirSync(join(root, 'memory')).sort()).toEqual(others);
});

test('the rest of a lone part in the group of a supervisor that is gone is killed', async () => {
  const kept = ['api', 'node'].map(() => Bun.spawn(['sleep', '1000'], { stdio: ['ignore', 'ignore', 'ignore'] }));
  for (const [index, part] of ['api', 'node'].entries()) {
    prepare(`memory/${groupsOf(9_999_999)}/${part}`, []);
    writeFileSync(join(root, 'memory', groupsOf(9_999_999), part, 'cgroup.procs'), `${kept[index]?.pid}\n`);
  }
  makePartGroups({ api: { ...budgets.api, isAlone: true }, node: budgets.api }, root);
  expect(await kept[0]?.exited).toBe(137);
  expect(kept[1]?.exitCode).toBeNull();
  kept[1]?.kill();
});

test('budgets are parts of the machine, and never too small to start with', () => {
  const gib = 1024 ** 3;
  const { node, api, edge } = budgetsOf(16 * gib);
  expect([node.memoryBytes, api.memoryBytes, edge.memoryBytes]).toEqual([12 * gib, 4 * gib, 4 * gib]);
  expect(budgetsOf(gib).edge.memoryBytes).toBe(gib / 2);
  for (const { tasksMax } of [node, api, edge]) expect(tasksMax >= 1024).toBe(true);
});
