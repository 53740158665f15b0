import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command, Terminal } from '../terminal/command.ts';
import { confirm } from '../terminal/table.ts';
import { isSure as askWhetherSure } from '../terminal/sure.ts';

/** This machine's own installation, in terms of ending it. */
export type OwnInstallation = {
  /** Whether there is one, even if only a first start that failed. */
  isThere(): boolean;
  /** Fails with `not_found` if there is none, before anybody is asked whether they are sure. */
  require(): void;
  /** Whether it can have sandboxes: those of a control process are on the machines of its cluster. */
  hasSandboxes(): boolean;
  /**
   * Tells the platform, if one runs, whether its sandboxes will be ended after it: the platform announces what becomes
   * of them.
   */
  announceDown(goesDown: boolean): void;
  /** Ends the platform's processes and waits for them; its sandboxes run on. Answers whether any ran. */
  endPlatform(): Promise<boolean>;
  /**
   * Ends the running sandboxes, with `all` also the paused and set-aside ones. No platform may be running. Answers why
   * the database could not be reached, if so: then the next start finds out.
   */
  endSandboxes(options: { all: boolean }, terminal: Terminal): Promise<{ unreported?: string }>;
};

const removalQuestion =
  'This removes paused sandboxes too, and those that were set aside, with all that they have kept. Go on?';

const machinesGoOn =
  'A control process has no sandboxes: those of its cluster run on, and `atoll down` on a machine ends that one’s.';

/** `atoll stop`: ends only the platform. */
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

/** `atoll down`: ends the platform, if it runs, and its sandboxes. `isSure`: asks a person at the keyboard. */
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
