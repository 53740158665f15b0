import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { killIfThere } from '../../src/base/if-there.ts';
import { checkpointAndRun, checkpointToPause } from '../../src/node/snapshot/checkpoint.ts';
import type { Helper } from '../../src/node/native/helper.ts';
import { openSnapshot } from '../../src/node/snapshot/restore.ts';
import { waitFor } from '../support/process.ts';
import { compilePreloaded } from '../../scripts/setup/native-tests.mjs';
import { startMachine, type Machine, type RestoreHooks } from './support/machine.ts';

/** The CRIU processes of a dump with the given configuration: it has short-lived children. */
const dumpsOf = (config: string) =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(config);
      } catch {
        return false; // it has ended
      }
    });

// The next start undoes what a killed dump has left. It must find that there was one, even if the platform ended after
// it had seen the end of CRIU and before it had undone anything.
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
  const directory = join(machine.snapshots, 'cut');
  /** Answers why the dump failed; undefined if it was over before the kill. */
  const dumpAndKill = async () => {
    const dump = checkpointAndRun({ ...machine.host, helper }, sandbox.source, { directory, name: 'cut', facts: {} });
    const failure = dump.then(
      () => undefined,
      (error: Error) => error.message,
    );
    const pids = await waitFor('CRIU', () => {
      const found = dumpsOf(config);
      return found.length > 0 && found;
    });
    for (const pid of pids) killIfThere(Number(pid));
    return failure;
  };
  // A dump takes a tenth of a second, and on a busy machine looking takes as long.
  const dumpCutOff = async () => {
    for (let left = 10; left > 0; left--) {
      const failure = await dumpAndKill();
      if (failure !== undefined) return failure;
      rmSync(directory, { recursive: true });
    }
    throw new Error('every dump was over before its kill');
  };
  try {
    expect(await dumpCutOff()).toContain('the platform ends here');
    expect(existsSync(config)).toBe(true);
    fails = false;
    expect(await dumpCutOff()).toContain('CRIU was ended by signal 9 before the memory of the sandbox was kept');
    expect(existsSync(config)).toBe(false);
    expect(seen).toEqual([true, true]);
    await sandbox.answers();
  } finally {
    await machine.kill(sandbox);
  }
}, 120_000);

// CRIU ends at once if a process of the sandbox is killed while CRIU works on it, and leaves its packet rules.
test('a sandbox whose process was killed in a dump stays within reach', async () => {
  await using machine = await startMachine();
  const sandbox = await machine.start(0);
  const inside = ['nsenter', '-t', String(sandbox.source.pid), '-n', 'nft'];
  let dumps = 0;
  const helper: Helper = Object.create(machine.host.helper, {
    spawn: {
      value: async (...[argv, options]: Parameters<Helper['spawn']>) => {
        if (!argv.includes('dump') || ++dumps > 1) return machine.host.helper.spawn(argv, options);
        const rules = 'add table inet CRIU; add chain inet CRIU i { type filter hook input priority 0; policy drop; }';
        expect(Bun.spawnSync([...inside, rules]).exitCode).toBe(0);
        return { status: 1, output: '' };
      },
    },
  });
  const directory = join(machine.snapshots, 'process-killed');
  try {
    await checkpointAndRun({ ...machine.host, helper }, sandbox.source, {
      directory,
      name: 'process-killed',
      facts: {},
    });
    expect(dumps).toBe(2);
    expect(Bun.spawnSync([...inside, 'list', 'tables']).stdout.toString()).toBe('');
    await sandbox.answers();
  } finally {
    await machine.kill(sandbox);
  }
}, 120_000);

/** A paused sandbox, and how to bring it back. */
async function paused(machine: Machine) {
  const sandbox = await machine.start(0);
  const directory = join(machine.snapshots, 'paused');
  const options = { directory, name: 'paused', facts: {}, then: 'end', onComplete: async () => {} } as const;
  await checkpointToPause(machine.host, sandbox.source, options);
  await machine.release(sandbox);
  const snapshot = await openSnapshot(machine.host, directory);
  return {
    /** Restores while something fails. Afterwards, the slot is empty. */
    async failing(slot: number, hooks: RestoreHooks): Promise<Error> {
      let first = 0;
      const onNamespaces = async (pid: number) => void (first = pid);
      const restored = machine.restore(snapshot, slot, sandbox.source.disk, undefined, { ...hooks, onNamespaces });
      const failure = await restored.then(
        () => new Error('it was restored'),
        (error: Error) => error,
      );
      await machine.abandon(slot);
      expect(existsSync(`/proc/${first}`)).toBe(false);
      return failure;
    },
    async works(slot: number) {
      const restored = await machine.restore(snapshot, slot, sandbox.source.disk);
      await restored.answers();
      await machine.kill(restored);
    },
  };
}

// CRIU then ends the sandbox's first process and waits for it, while that waits for a process that only CRIU can reap.
test('a restore under which a process is killed fails soon, leaves nothing, and can be done again', async () => {
  await using machine = await startMachine();
  const { failing, works } = await paused(machine);
  let killed = 0;
  const beforeResume = async (pid: number) => {
    for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [])
      if (killIfThere(Number(child))) killed++;
  };
  expect((await failing(1, { beforeResume })).message).toContain('put back');
  expect(killed).toBeGreaterThan(0);
  await works(2);
}, 60_000);

// Nobody traces it, and CRIU and all others wait for it.
test('so it does where the process is killed while CRIU takes hold of it', async () => {
  await using machine = await startMachine();
  const { failing, works } = await paused(machine);
  const library = join(machine.dataDir, 'kill-in-attach.so');
  compilePreloaded(join(import.meta.dir, '../..'), library, 'test/native/kill-in-attach.c');
  const helper: Helper = Object.create(machine.host.helper, {
    spawn: {
      value: (...[argv, options]: Parameters<Helper['spawn']>) => {
        const more = argv.map(text => (text.startsWith('LD_PRELOAD=') ? `${text}:${library}` : text));
        return machine.host.helper.spawn(argv.includes('restore') ? more : argv, options);
      },
    },
  });
  expect((await failing(1, { helper })).message).toContain('put back');
  await works(2);
}, 60_000);
