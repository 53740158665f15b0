import { createInterface } from 'node:readline/promises';
import { systemClock } from '../api/app/clock.ts';
import { openStore } from '../api/store/database.ts';
import { forgetEnded } from '../api/store/ended-sandboxes.ts';
import { AtollError, messageOf } from '../base/error.ts';
import { createLog } from '../base/log.ts';
import { parseArguments } from '../cli/arguments.ts';
import type { Command, Terminal } from '../cli/command.ts';
import { isInUse } from '../node/installation.ts';
import type { ExecutionRef } from '../protocol/node.ts';
import { apiKeyFile, storeLocation } from './accounts.ts';
import { readIfThere } from './identity.ts';
import { requirePair } from './installation/check.ts';
import { endInstance } from './instance.ts';
import { endSandboxes } from './own-node.ts';
import type { Settings } from './settings.ts';

/** How long the platform's processes may take to end when their supervisor is gone already. */
const processesEndMs = 15_000;
const unusedPollMs = 50;

/** `atoll stop`: ends the platform alone. */
export function stopCommand(settings: () => Settings): Command {
  return {
    name: 'stop',
    usage: '',
    summary: 'Ends the platform; its sandboxes run on, and the next start takes them over',
    async run(args, terminal) {
      parseArguments(args, {});
      const { dataDir } = installed(settings);
      terminal.err((await endInstance(dataDir)) ? 'The platform has ended. Its sandboxes run on.\n' : 'No platform runs.\n');
      return 0;
    },
  };
}

/** `atoll down`: ends the platform, if it runs, and its sandboxes. */
export function downCommand(settings: () => Settings): Command {
  return {
    name: 'down',
    usage: '[--all [--yes]]',
    summary: 'Ends the platform and every sandbox that runs; paused ones stay, unless --all removes them too; templates, volumes, keys and state stay',
    async run(args, terminal) {
      const { values } = parseArguments(args, { all: { type: 'boolean' }, yes: { type: 'boolean' } });
      const own = installed(settings);
      const all = values.all ?? false;
      if (all && !values.yes && !(await isSure(terminal))) {
        terminal.err('Nothing was changed.\n');
        return 1;
      }
      if (await endInstance(own.dataDir)) terminal.err('The platform has ended.\n');
      await untilUnused(own.dataDir);
      const ended = await endSandboxes({ settings: own, log: createLog(own.logLevel, terminal.err) }, { all });
      await tellStore(own, ended, terminal);
      terminal.err(all ? 'Every sandbox is removed.\n' : 'Every sandbox that ran has ended. Paused ones are kept; `atoll down --all` removes them too.\n');
      return 0;
    },
  };
}

/** A supervisor that was killed, or told together with its processes, may be gone before they are. */
async function untilUnused(dataDir: string): Promise<void> {
  const deadline = performance.now() + processesEndMs;
  while (isInUse(dataDir) && performance.now() < deadline) await Bun.sleep(unusedPollMs);
}

function installed(settings: () => Settings): Settings {
  const own = settings();
  if (readIfThere(apiKeyFile(own.dataDir)) !== undefined) return own;
  throw new AtollError('not_found', `There is no installation in ${own.dataDir}. Set ATOLL_DATA_DIR to the directory of the one you mean.`);
}

/** Who types it is asked; a script that says it means it. */
async function isSure(terminal: Terminal): Promise<boolean> {
  if (!terminal.isInteractive || process.stdin.isTTY !== true) return true;
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await reader.question('This removes paused sandboxes too, and those that were set aside, with all that they have kept. Go on? [y/N] ')).trim());
  } finally {
    reader.close();
  }
}

/** Otherwise the next start would take them for lost. A database that is away or damaged keeps nobody from going down. */
async function tellStore(settings: Settings, ended: ExecutionRef[], terminal: Terminal): Promise<void> {
  try {
    await requirePair(settings);
    await using store = await openStore(storeLocation(settings));
    await forgetEnded(store.db, ended, systemClock()());
  } catch (error) {
    terminal.err(`The database could not be told; the next start finds those sandboxes gone: ${messageOf(error)}\n`);
  }
}
