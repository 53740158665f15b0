import { resolve } from 'node:path';
import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { jsonText, toPerson } from '../terminal/table.ts';

/** What changes the installation of this machine to this version. */
type Upgrade = {
  plan(): Promise<{ schema: string; pending: string[]; running: number; paused: number; openBuilds: number }>;
  /** Fails where a migration does, on a copy. */
  tryOut(): Promise<void>;
  /** Path of a backup that is named after this moment. */
  backupFile(): string;
  backup(file: string): Promise<void>;
  /** Restarts the service where it runs; false: the platform is started by hand. */
  restart(): Promise<boolean>;
};

/** `atoll upgrade`. */
export function upgradeCommand(upgrade: Upgrade): Command {
  return {
    name: 'upgrade',
    usage: '[--check] [--backup FILE] [--json]',
    summary:
      'Goes on with this version: tries its migrations on a copy, writes a backup, restarts the service; --check ' +
      'says what will happen',
    async run(args, terminal) {
      const { values } = parseArguments(args, {
        check: { type: 'boolean' },
        backup: { type: 'string' },
        ...jsonOption,
      });
      const tell = toPerson(terminal, values.json);
      const plan = await upgrade.plan();
      tell(planText(plan));
      await upgrade.tryOut();
      tell(plan.pending.length > 0 ? 'The migrations succeed on a copy of the state.\n' : '');
      if (values.check) {
        tell('Nothing was changed.\n');
        if (values.json) terminal.out(jsonText({ ...plan, backup: null, restarted: false }));
        return 0;
      }
      const file = resolve(values.backup ?? upgrade.backupFile());
      await upgrade.backup(file);
      tell(`Backup: ${file}\n`);
      const data =
        plan.pending.length > 0 ? `\`atoll restore ${file}\` into an empty data directory` : 'the same data directory';
      const wayBack = `The way back: the version of before, and ${data}.`;
      const restarted = await upgrade.restart();
      if (restarted) tell(`The service runs with this version. ${wayBack}\n`);
      else tell(`Start this version now: end the platform with \`atoll stop\`, then \`atoll up\`. ${wayBack}\n`);
      if (values.json) terminal.out(jsonText({ ...plan, backup: file, restarted }));
      return 0;
    },
  };
}

function planText({ schema, pending, running, paused, openBuilds }: Awaited<ReturnType<Upgrade['plan']>>): string {
  const state =
    pending.length === 0
      ? `State: ${schema}, which this version uses as it is.\n`
      : `State: ${schema}. This version brings ${pending.join(', ')}, in one transaction: if it fails, the ` +
        `version of before goes on.\n`;
  const builds = openBuilds === 0 ? '' : `Builds under way: ${openBuilds}. They end, and have to be started again.\n`;
  return `${state}Sandboxes: ${running} running, ${paused} paused. They stay, and are taken over.\n${builds}`;
}
