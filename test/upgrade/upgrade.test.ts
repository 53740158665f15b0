import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atoll, upOnce } from '../safety/support/directory.ts';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';
import { testUnless } from '../support/skip.ts';
import { earlierVersions, setUp } from './earlier.ts';
import { beginBuild, expectCutOff, expectKept, expectScene, makeKept, makeScene } from './scene.ts';

// Installations made by earlier versions continue with this one: what runs, what is paused, what is kept, and what is
// being built. The earlier versions are set up from the history of the checkout.

setDefaultTimeout(20 * 60_000);
const found = earlierVersions();
const upgradeTest = testUnless('missing' in found ? found.missing : undefined);
const folder = mkdtempSync(join(tmpdir(), 'atoll-upgrade-'));
const programs = { before: join(folder, 'before/bin/atoll'), same: join(folder, 'same/bin/atoll') };

beforeAll(async () => {
  if ('missing' in found) return;
  await setUp(found.before, join(folder, 'before'));
  await setUp(found.same, join(folder, 'same'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A paused sandbox goes to the disk at once, and another version resumes it from there. */
const fresh = { ATOLL_FROZEN_SECONDS: '0' };
/** Settings of a platform that continues with another one's data, at its address. */
const onDataOf = ({ ready }: TestPlatform) => ({
  ...fresh,
  ATOLL_DATA_DIR: ready.dataDir,
  ATOLL_PORT: new URL(ready.url).port,
});
const brings = 'brings' in found ? found.brings : [];
const errorsIn = (log: string) => log.split('\n').filter(line => line.includes('"level":"error"'));

/**
 * An upgrade is a stop and a start: everything that takes longer came before. A busy machine is several times slower.
 */
const awayMaxMs = 30_000;

/** Sends requests to a platform continuously; the returned function tells, once it is back, how long it was away. */
function timeAway(url: string): () => Promise<number> {
  const serves = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  let [last, longest, isOver] = [performance.now(), 0, false];
  const asking = (async () => {
    while (!isOver) {
      if (await serves()) {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }
      await Bun.sleep(20);
    }
  })();
  return async () => {
    const since = performance.now();
    await waitFor('the platform to serve', () => last > since);
    isOver = true;
    await asking;
    return longest;
  };
}

/** Makes versions run on one data directory, one after another, and removes what they leave. */
async function onOneDirectory(
  work: (start: (program?: string) => Promise<TestPlatform>) => Promise<void>,
): Promise<void> {
  let last: TestPlatform | undefined;
  try {
    await work(async program => {
      await last?.stop();
      last = await startPlatform(last ? onDataOf(last) : fresh, program);
      return last;
    });
  } finally {
    await last?.[Symbol.asyncDispose]();
  }
}

upgradeTest('an upgrade keeps what runs, is paused and is kept, and a build under way ends with a reason', () =>
  onOneDirectory(async start => {
    const old = await start(programs.before);
    const kept = await makeKept(old);
    const scene = await makeScene(old);
    const build = await beginBuild(old);

    const check = await atoll(old.env, 'upgrade', '--check');
    expect(check).toMatchObject({ exitCode: 0, stderr: '' });
    for (const name of brings) expect(check.stdout).toContain(name);
    expect(check.stdout).toContain('Sandboxes: 1 running, 2 paused. They stay');
    expect(check.stdout).toContain('Builds under way: 1.');
    expect(check.stdout).toContain('The migrations succeed on a copy of the state.\nNothing was changed.\n');
    expect((await old.api('GET', '/v2/sandboxes')).status).toBe(200);

    const upgrade = await atoll(old.env, 'upgrade');
    expect(upgrade.exitCode, upgrade.stderr).toBe(0);
    const [, backup = ''] = /^Backup: (.*)$/m.exec(upgrade.stdout) ?? [];
    expect(upgrade.stdout).toContain(`atoll restore ${backup}`);
    expect(await Bun.file(backup).exists()).toBe(true);
    const away = timeAway(old.ready.url);
    expect((await atoll(old.env, 'stop')).exitCode).toBe(0);
    const platform = await start();
    const awayMs = await away();
    process.stderr.write(`the platform was away for ${(awayMs / 1000).toFixed(1)} s\n`);
    expect(awayMs).toBeLessThan(awayMaxMs);
    await expectScene(platform, scene);
    await expectKept(platform, kept);
    await expectCutOff(platform, build);
    expect(errorsIn(platform.log())).toEqual([]);
  }),
);

upgradeTest('an upgrade whose migration fails says so, and the earlier version goes on', () =>
  onOneDirectory(async start => {
    const old = await start(programs.before);
    let scene = await makeScene(old);
    await old.stop();
    const change = (sql: string) => {
      using database = new Database(join(old.ready.dataDir, 'api/atoll.sqlite'), { readwrite: true, strict: true });
      database.run(sql);
    };
    // The last step of a migration.
    change("create trigger refuse before insert on kysely_migration begin select raise(abort, 'by the test'); end");
    const env = { ...process.env, ...onDataOf(old), ATOLL_TEMPLATES: 'none' };
    const { served, stderr } = await upOnce([join(repository, 'bin/atoll'), 'up', '--json'], env);
    expect(served).toBe(false);
    expect(stderr).toMatch(/The database cannot be brought up to date: migration \S+ failed/);
    expect(stderr).not.toMatch(/\n\s+at /);
    change('drop trigger refuse');

    await old.restart();
    scene = await expectScene(old, scene);
    await expectScene(await start(), scene);
  }),
);

upgradeTest('within one schema an installation goes back to the earlier version, and forth again', () =>
  onOneDirectory(async start => {
    const platform = await start();
    const kept = await makeKept(platform);
    let scene = await makeScene(platform);
    for (const program of [programs.same, undefined]) {
      const next = await start(program);
      scene = await expectScene(next, scene);
      await expectKept(next, kept);
    }
  }),
);
