import { expect, test } from 'bun:test';
import { Sandbox } from 'e2b';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';
import { criuOf } from './support/victims.ts';

const rounds = 3;
const roundsMax = 30;
/** Whatever ends with the platform has ended by then. */
const killedMs = 20;
/** Ends by SIGPIPE and SIGTRAP, as most programs do, and has enough memory to keep CRIU busy for long. */
const program = 'perl -e \'$memory = "abcd" x 25e6; sleep 1 while 1\'';

const clientOf = ({ ready: { apiKey, url, domain } }: TestPlatform) => ({
  ...{ apiKey, apiUrl: url, sandboxUrl: url, domain, requestTimeoutMs: 60_000 },
});

test('no program of a sandbox ends when the platform is killed in the middle of a snapshot', async () => {
  await using platform = await startPlatform({ ATOLL_POOL_SIZE: '0' });
  const sandbox = await Sandbox.create({ ...clientOf(platform), timeoutMs: 3_600_000 });
  const programs = async () => (await sandbox.commands.run('pgrep -c perl || true')).stdout.trim();
  await (await sandbox.commands.run(program, { background: true, timeoutMs: 0 })).disconnect();
  await waitFor('its memory', async () =>
    (await sandbox.commands.run("ps -C perl -o rss= | awk '{print ($1 > 90000)}'")).stdout.startsWith('1'),
  );
  let cut = 0;
  for (let round = 0; cut < rounds && round < roundsMax; round++) {
    const taken = sandbox.createSnapshot().catch(() => {});
    const [criu] = await waitFor('CRIU', () => {
      const found = criuOf(platform);
      return found.length > 0 && found;
    });
    await Bun.sleep((round * 10) % 100);
    await platform.kill9();
    await Bun.sleep(killedMs);
    if (criu !== undefined && criuOf(platform).includes(criu)) cut++;
    await platform.restart();
    await taken;
    expect(criuOf(platform)).toEqual([]);
    expect({ round, programs: await programs() }).toEqual({ round, programs: '1' });
  }
  expect(cut).toBe(rounds);
  await sandbox.kill();
}, 120_000);
