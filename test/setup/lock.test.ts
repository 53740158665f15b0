import { afterAll, expect, test } from 'bun:test';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exclusively } from '../../scripts/setup/lock.mjs';
import { repository } from '../support/platform.ts';
import { start, textOf, waitFor } from '../support/process.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-lock-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Takes the lock in a Node.js process, as set-up does, and keeps it. */
function holderOf(file: string) {
  const lock = JSON.stringify(join(repository, 'scripts/setup/lock.mjs'));
  const program = `import { exclusively } from ${lock};
    await exclusively(${JSON.stringify(file)}, () => { console.log('has it'); return new Promise(() => setInterval(() => {}, 1000)); });`;
  const child = start(['node', '--input-type=module', '-e', program], {});
  return { child, said: textOf(child, 'stdout'), complaint: textOf(child, 'stderr') };
}

test('what an earlier set-up left in the file keeps nobody waiting', async () => {
  for (const [name, text] of [
    ['empty', ''],
    ['another program', String(process.pid)],
    ['init', '1'],
  ] as const) {
    const file = join(folder, name);
    writeFileSync(file, text);
    expect(await exclusively(file, () => name)).toBe(name);
    await expect(exclusively(file, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  }
});

test('one works at a time, of however many', async () => {
  const file = join(folder, 'many');
  let working = 0;
  let most = 0;
  const work = async () => {
    most = Math.max(most, ++working);
    await Bun.sleep(5);
    working--;
  };
  await Promise.all(Array.from({ length: 8 }, () => exclusively(file, work)));
  expect({ most, working }).toEqual({ most: 1, working: 0 });
});

test('whoever waits for a process that is killed goes on, and one of them alone', async () => {
  const file = join(folder, 'killed');
  const first = holderOf(file);
  await waitFor('the first', () => first.said().includes('has it'));
  const waiting = [holderOf(file), holderOf(file)];
  await waitFor('both to wait', () => waiting.every(({ complaint }) => complaint().includes('Waiting')));
  expect(waiting.filter(({ said }) => said() !== '')).toEqual([]);
  first.child.kill('SIGKILL');
  await waitFor('one of them', () => waiting.some(({ said }) => said().includes('has it')));
  // A window: the other one may not have it as well.
  await Bun.sleep(200);
  expect(waiting.filter(({ said }) => said().includes('has it'))).toHaveLength(1);
  for (const { child } of waiting) {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
  expect(await exclusively(file, () => 'done')).toBe('done');
});

test('who is interrupted keeps the lock until what it runs has ended, and says that it is to be run again', async () => {
  const file = join(folder, 'interrupted');
  const mark = join(folder, 'half-made');
  const [lock, run] = ['lock', 'run'].map(name => JSON.stringify(join(repository, `scripts/setup/${name}.mjs`)));
  // Like npm: it undoes what it has begun before it ends.
  const script = `trap 'sleep 0.5; rm ${mark}; exit 1' INT TERM; touch ${mark}; while :; do sleep 0.05; done`;
  const program = `import { exclusively } from ${lock};
    import { endAfterWork, run } from ${run};
    endAfterWork();
    await exclusively(${JSON.stringify(file)}, () => run(['sh', '-c', ${JSON.stringify(script)}]));`;
  // A terminal signals all of them; a service manager may signal only the first one.
  for (const interrupt of [
    (pid: number) => process.kill(-pid, 'SIGINT'),
    (pid: number) => process.kill(pid, 'SIGTERM'),
  ]) {
    const child = start(['node', '--input-type=module', '-e', program], {});
    const complaint = textOf(child, 'stderr');
    await waitFor('the work to begin', () => existsSync(mark));
    interrupt(child.pid ?? 0);
    await exclusively(file, () => expect(existsSync(mark)).toBe(false));
    if (child.exitCode === null) await once(child, 'exit');
    expect(child.exitCode).toBe(130);
    expect(complaint()).toContain('Set-up was interrupted. Run it again');
  }
});

test('a step that goes on without what was wanted has no check mark, and says why', async () => {
  const progress = JSON.stringify(join(repository, 'scripts/setup/progress.mjs'));
  const program = `import { step } from ${progress};
    await step('CRIU', () => ({ missing: 'the mirror is away' })); await step('gVisor', () => ({ missing: undefined }));`;
  const child = start(['node', '--input-type=module', '-e', program], {});
  const said = textOf(child, 'stderr');
  await once(child, 'close');
  const ends = said()
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('…'));
  expect(ends).toEqual(['– CRIU (0 s): it is not to be had now; the mirror is away', '✓ gVisor (0 s)']);
});
