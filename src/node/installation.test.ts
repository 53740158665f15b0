import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { installationsMax } from '../base/process/part-users.ts';
import { chooseNumber } from './installation.ts';

const taken = ['/a', '/b', '/c'];
const host = { isSeen: (owner: string) => owner === '/a', hasProcesses: (number: number) => number === 1 };

test('an installation keeps its number, and a new one takes a free one', () => {
  expect(chooseNumber(taken, '/b', host)).toBe(1);
  expect(chooseNumber(['/a', undefined, '/c'], '/d', host)).toBe(1);
});

test('a number whose directory is not seen here is taken last, and not where processes of it run', () => {
  expect(chooseNumber(taken, '/d', host)).toBe(2);
  expect(chooseNumber(taken, '/d', { ...host, hasProcesses: () => true })).toBeUndefined();
  expect(chooseNumber(taken, '/d', { ...host, isSeen: () => true })).toBeUndefined();
});

/** The answer of a program that runs with a /run of its own, and without control groups. */
async function withOwnRun(program: string): Promise<unknown> {
  const inside = `
    import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
    import { claimInstallation, isInUse } from ${JSON.stringify(join(import.meta.dir, 'installation.ts'))};
    const dataDir = () => mkdtempSync('/run/data-');
    const isMounted = path => existsSync(path) && statSync(path).dev !== statSync(path + '/..').dev;
    console.log(JSON.stringify((() => { ${program} })()));`;
  const own = 'mount -t tmpfs own /run && mount -t tmpfs own /sys/fs/cgroup && exec "$@"';
  const child = Bun.spawn(
    ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', own, 'sh', process.execPath, '-e', inside],
    { stdout: 'pipe', stderr: 'inherit' },
  );
  return JSON.parse(await new Response(child.stdout).text());
}

test('the files of an installation are in memory, and stay while it has its number', async () => {
  const found = await withOwnRun(`
    const data = dataDir();
    const first = claimInstallation(data);
    writeFileSync(first.runDir + '/state', 'kept');
    first.unlock();
    const again = claimInstallation(data);
    const isKept = existsSync(again.runDir + '/state');
    const [before, number] = [isMounted(again.runDir), again.number];
    again.release();
    const after = existsSync(again.runDir);
    const onDisk = claimInstallation(dataDir(), { inMemory: false });
    return { isKept, before, number, after, onDisk: isMounted(onDisk.runDir) };`);
  expect(found).toEqual({ isKept: true, before: true, number: 0, after: false, onDisk: false });
});

test('a data directory has one installation at a time', async () => {
  const found = await withOwnRun(`
    const data = '/run/new/data';
    const first = claimInstallation(data);
    let refused;
    try { claimInstallation(data); } catch (error) { refused = error.code; }
    const used = isInUse(data);
    first.unlock();
    return { refused, used: [used, isInUse(data), isInUse(data)], again: claimInstallation(data).number };`);
  expect(found).toEqual({ refused: 'conflict', used: [true, false, false], again: 0 });
});

test('leftovers of a former installation hide nothing of the next one with its number', async () => {
  const found = await withOwnRun(`
    const gone = Array.from({ length: ${installationsMax} }, () => {
      const data = dataDir();
      const { runDir, unlock } = claimInstallation(data);
      writeFileSync(runDir + '/state', 'old');
      unlock();
      return { data, runDir };
    });
    let refused;
    try { claimInstallation(dataDir()); } catch (error) { refused = error.code; }
    rmSync(gone[1].data, { recursive: true });
    const next = claimInstallation(dataDir());
    const isOld = existsSync(next.runDir + '/state');
    return { refused, number: next.number, isOld, isMounted: isMounted(next.runDir) };`);
  expect(found).toEqual({ refused: 'unavailable', number: 1, isOld: false, isMounted: true });
});
