import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command, Terminal } from '../terminal/command.ts';
import { confirm } from '../terminal/table.ts';
import { isSure as askWhetherSure } from '../terminal/sure.ts';

/** This machine's own installation, as far as it can be ended. */
export type OwnInstallation = {
  /** Says whether there is one, be it only one whose first start has failed. */
  isThere(): boolean;
  /** Fails with `not_found` where there is none: before anybody is asked whether they are sure. */
  require(): void;
  /** Whether sandboxes can be of it: of a control process they are at the machines of its cluster. */
  hasSandboxes(): boolean;
  /** Tells the platform, if one runs, whether its sandboxes are ended after it: it says what becomes of them. */
  announceDown(goesDown: boolean): void;
  /** Ends the platform's processes and waits for them; its sandboxes run on. Answers whether any ran. */
  endPlatform(): Promise<boolean>;
  /**
   * Ends the sandboxes that run, with `all` also those that are paused or set aside. A platform must not run. Answers
   * why the database could not be reached, where it could not: the next start finds out then.
   */
  endSandboxes(options: { all: boolean }, terminal: Terminal): Promise<{ unreported?: string }>;
};

const removalQuestion =
  'This removes paused sandboxes too, and those that were set aside, with all that they have kept. Go on?';

const machinesGoOn =
  'A control process has no sandboxes: those of its cluster run on, and `atoll down` on a machine ends that one’s.';

/** `atoll stop`: ends the platform alone. */
export function stopCommand(own: OwnInstallation): Command {
  return {
    name: 'stop',
    usage: '[--json]',
    summary: 'Ends the platform; its sandboxes run on, and the next start takes them over',
    async run(args, terminal) {
      const { values } = parseArguments(args, jsonOption);
      own.announceDown(false);
      const ended = await own.endPlatform();
      const sentence = ended ? 'The platform has ended. Its sandboxes run on.' : 'No platform runs.';
      confirm(terminal, values.json, { ended }, sentence);
      return 0;
    },
  };
}

/** `atoll down`: ends the platform, if it runs, and its sandboxes. `isSure`: asks a person who types. */
export function downCommand(own: OwnInstallation, isSure = askWhetherSure): Command {
  return {
    name: 'down',
    usage: '[--all [--yes]] [--json]',
    summary:
      'Ends the platform and every sandbox that runs; paused ones stay, unless --all removes them too; templates, ' +
      'volumes, keys and state stay',
    async run(args, terminal) {
      const { values } = parseArguments(args, { all: { type: 'boolean' }, yes: { type: 'boolean' }, ...jsonOption });
      own.require();
      const all = values.all ?? false;
      if (all && !values.yes && !(await isSure(terminal, removalQuestion))) {
        terminal.err('Nothing was changed.\n');
        return 1;
      }
      const hasSandboxes = own.hasSandboxes();
      own.announceDown(hasSandboxes);
      const ended = await own.endPlatform();
      if (ended) terminal.err('The platform has ended.\n');
      if (!hasSandboxes) {
        confirm(terminal, values.json, { ended, removed: 'none' }, machinesGoOn);
        return 0;
      }
      const { unreported } = await own.endSandboxes({ all }, terminal);
      if (unreported !== undefined)
        terminal.err(`The database could not be reached; the next start finds those sandboxes gone: ${unreported}\n`);
      confirm(
        terminal,
        values.json,
        { ended, removed: all ? 'all' : 'running' },
        all
          ? 'Every sandbox is removed.'
          : 'Every sandbox that ran has ended. Paused ones are kept; `atoll down --all` removes them too.',
      );
      return 0;
    },
  };
}
