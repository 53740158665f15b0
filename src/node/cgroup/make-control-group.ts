import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allowedDevices } from './allowed-devices.ts';

const unifiedControllers = ['cpu', 'memory', 'pids'];

/**
 * Makes the control group of a sandbox and answers its directories. On version 1 this also sets which devices it may
 * use; on version 2 the group above all sandboxes has a filter for that (device-filter.ts).
 */
export function makeControlGroup(version: 'v1' | 'v2', path: string, root: string): string[] {
  return version === 'v2' ? [makeUnified(root, path)] : makeSplit(root, path);
}

function makeUnified(root: string, path: string): string {
  const directory = join(root, path);
  mkdirSync(directory, { recursive: true });
  // A group has a controller only if every group above hands it down.
  let at = root;
  for (const part of path.split('/').filter(Boolean)) {
    writeFileSync(join(at, 'cgroup.subtree_control'), unifiedControllers.map(name => `+${name}`).join(' '));
    at = join(at, part);
  }
  return directory;
}

/** Makes a group in each hierarchy of version 1, which has one for each controller. */
function makeSplit(root: string, path: string): string[] {
  const hierarchies = readdirSync(root).filter(
    name => name !== 'unified' && existsSync(join(root, name, 'cgroup.procs')),
  );
  return hierarchies.map(name => {
    const directory = join(root, name, path);
    mkdirSync(directory, { recursive: true });
    if (existsSync(join(directory, 'cpuset.cpus')))
      for (const file of ['cpuset.cpus', 'cpuset.mems']) inherit(join(root, name), path, file);
    if (existsSync(join(directory, 'devices.deny'))) allowDevices(directory);
    return directory;
  });
}

/** A new cpuset has no processors until it is given some of the ones of the group above. */
function inherit(hierarchy: string, path: string, file: string): void {
  let at = hierarchy;
  for (const part of path.split('/').filter(Boolean)) {
    const above = readFileSync(join(at, file), 'utf8');
    at = join(at, part);
    if (readFileSync(join(at, file), 'utf8').trim() === '') writeFileSync(join(at, file), above);
  }
}

function allowDevices(directory: string): void {
  writeFileSync(join(directory, 'devices.deny'), 'a');
  for (const { major, minor } of allowedDevices)
    writeFileSync(join(directory, 'devices.allow'), `c ${major}:${minor ?? '*'} rwm`);
}
