import { expect, test } from 'bun:test';
import { resolve } from 'node:path';
import { runCommandLine } from '../run.ts';
import { upgradeCommand } from './upgrade.ts';

const planned = {
  ...{ schema: '0007', pending: ['0008-a', '0009-b'] },
  ...{ running: 2, paused: 3, openBuilds: 0, isCluster: false },
};

type Found = { plan?: Partial<typeof planned>; restarts?: boolean; fails?: 'tryOut' | 'backup' };

/** Runs the command on an installation; answers what was done to it, in order. */
async function run(argv: string[], { plan = {}, restarts = true, fails }: Found = {}) {
  const done: string[] = [];
  let [out, err] = ['', ''];
  const step = async (name: 'tryOut' | 'backup', text: string) => {
    done.push(text);
    if (name === fails) throw new Error(`${name} fails`);
  };
  const command = upgradeCommand({
    plan: async () => ({ ...planned, ...plan }),
    tryOut: () => step('tryOut', 'try'),
    backupFile: () => '/data/backups/before',
    backup: file => step('backup', `backup ${file}`),
    async restart() {
      done.push('restart');
      return restarts;
    },
  });
  const terminal = {
    out: (text: string | Uint8Array) => void (out += String(text)),
    err: (text: string) => void (err += text),
    isInteractive: false,
  };
  const code = await runCommandLine(['upgrade', ...argv], [command], terminal).catch((error: unknown) => error);
  return { code, out, err, done };
}

test('an upgrade is tried on a copy and saved before the service goes on with it', async () => {
  const { code, out, err, done } = await run([]);
  expect([code, err, done]).toEqual([0, '', ['try', 'backup /data/backups/before', 'restart']]);
  expect(out).toBe(
    'State: 0007. This version brings 0008-a, 0009-b, in one transaction: if it fails, the version of before goes ' +
      'on.\n' +
      'Sandboxes: 2 running, 3 paused. They stay, and are taken over.\n' +
      'The migrations succeed on a copy of the state.\n' +
      'Backup: /data/backups/before\n' +
      'The service runs with this version. The way back: the version of before, and `atoll restore ' +
      '/data/backups/before` into an empty data directory.\n',
  );
});

test('what fails before the backup is whole keeps the service as it is, and nothing is said to be done', async () => {
  const untried = await run([], { fails: 'tryOut' });
  expect(untried.done).toEqual(['try']);
  expect(untried.out).toStartWith('State: 0007.');
  expect(untried.out).not.toContain('succeed');
  const unsaved = await run([], { fails: 'backup' });
  expect(unsaved.done).toEqual(['try', 'backup /data/backups/before']);
  expect(unsaved.out).not.toContain('Backup:');
});

test('a check tries the migrations and changes nothing', async () => {
  const { code, out, done } = await run(['--check']);
  expect([code, done]).toEqual([0, ['try']]);
  expect(out).toEndWith('The migrations succeed on a copy of the state.\nNothing was changed.\n');
  const json = await run(['--check', '--json']);
  expect(json.done).toEqual(['try']);
  expect(JSON.parse(json.out)).toEqual({ ...planned, backup: null, restarted: false });
  expect(json.err).toContain('Nothing was changed.');
});

test('without migrations the way back keeps the data directory, and no copy is spoken of', async () => {
  const { out } = await run([], { plan: { pending: [] } });
  expect(out).toStartWith('State: 0007, which this version uses as it is.\n');
  expect(out).not.toContain('copy');
  expect(out).toContain('The way back: the version of before, and the same data directory.');
});

test('builds that will end are announced', async () => {
  expect((await run(['--check'], { plan: { openBuilds: 4 } })).out).toContain('Builds under way: 4. They end');
  expect((await run(['--check'])).out).not.toContain('Builds');
});

test('a backup can have another place, and who starts the platform by hand is told to', async () => {
  const { out, done } = await run(['--backup', 'mine.tar'], { restarts: false });
  expect(done).toEqual(['try', `backup ${resolve('mine.tar')}`, 'restart']);
  expect(out).toContain('Start this version now: end the platform with `atoll stop`, then `atoll up`.');
  expect(out).not.toContain('The service runs');
});

test('a program is told what was done as JSON alone', async () => {
  for (const restarts of [true, false]) {
    const { out, err } = await run(['--json'], { restarts });
    expect(JSON.parse(out)).toEqual({ ...planned, backup: '/data/backups/before', restarted: restarts });
    expect(err).toContain('Backup: /data/backups/before');
  }
});

test('of a cluster no backup is written: who upgrades is told to save it, before anything is done', async () => {
  const isCluster = { plan: { isCluster: true } };
  const { code, out, done } = await run([], isCluster);
  expect([code, done]).toEqual([0, ['try', 'restart']]);
  expect(out).toContain('save the database, the store and the seed yourself (docs/cluster.md)');
  expect(out).toEndWith('The way back: the version of before, and the database as you saved it before this.\n');
  expect((await run(['--backup', '/x'], isCluster)).done).toEqual([]);
});
