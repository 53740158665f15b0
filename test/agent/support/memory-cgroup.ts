import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = '/sys/fs/cgroup';

/**
 * A cgroup with a memory limit. `path` is below /sys/fs/cgroup. Disposal removes it once the processes in it have
 * ended.
 */
type MemoryCgroup = AsyncDisposable & { path: string };

export function makeMemoryCgroup(limitBytes: number): MemoryCgroup {
  const isVersion2 = existsSync(join(root, 'cgroup.controllers'));
  const name = `atoll-test-${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
  const path = isVersion2 ? name : join('memory', name);
  if (isVersion2) writeFileSync(join(root, 'cgroup.subtree_control'), '+memory');
  mkdirSync(join(root, path));
  writeFileSync(join(root, path, isVersion2 ? 'memory.max' : 'memory.limit_in_bytes'), String(limitBytes));
  const swap = join(root, path, isVersion2 ? 'memory.swap.max' : 'memory.memsw.limit_in_bytes');
  if (existsSync(swap)) writeFileSync(swap, isVersion2 ? '0' : String(limitBytes));
  return {
    path,
    async [Symbol.asyncDispose]() {
      while (readFileSync(join(root, path, 'cgroup.procs'), 'utf8') !== '') await Bun.sleep(10);
      rmdirSync(join(root, path));
    },
  };
}
