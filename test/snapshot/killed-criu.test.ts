import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkpointAndRun } from '../../src/node/snapshot/checkpoint.ts';
import type { Helper } from '../../src/node/native/helper.ts';
import { waitFor } from '../support/process.ts';
import { startMachine } from './support/machine.ts';

/** A process that runs CRIU's dump with the given configuration. */
const dumpOf = (config: string) =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .find(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(config);
      } catch {
        return false; // it has ended
      }
    });

// The next start undoes what a killed dump has left: it must find that there was one, also where the platform ended
// after it had seen the end of CRIU and before it had undone anything.
test('the file of a killed dump is there until what it left is undone', async () => {
  await using machine = await startMachine();
  const sandbox = await machine.start(0);
  const config = join(machine.host.runDir, 'cut.conf');
  const seen: boolean[] = [];
  let fails = true;
  const helper: Helper = Object.create(machine.host.helper, {
    spawn: {
      value: async (...[argv, options]: Parameters<Helper['spawn']>) => {
        if (argv[1] === 'undo-dump') {
          seen.push(existsSync(config));
          if (fails) throw new Error('the platform ends here');
        }
        return machine.host.helper.spawn(argv, options);
      },
    },
  });
  const pauseAndKill = async () => {
    const pause = checkpointAndRun({ ...machine.host, helper }, sandbox.source, {
      directory: join(machine.snapshots, 'cut'),
      name: 'cut',
      facts: {},
    }).catch((error: Error) => error.message);
    // It waits for the word about the stage only once it has begun; any moment before its end will do.
    process.kill(Number(await waitFor('CRIU', () => dumpOf(config))), 'SIGKILL');
    return pause;
  };
  expect(await pauseAndKill()).toContain('the platform ends here');
  expect(existsSync(config)).toBe(true);
  fails = false;
  expect(await pauseAndKill()).toContain('CRIU was ended by signal 9');
  expect(existsSync(config)).toBe(false);
  expect(seen).toEqual([true, true]);
  await sandbox.answers();
  await machine.kill(sandbox);
}, 120_000);
