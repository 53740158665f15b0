import { resolve } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { interruptible } from '../terminal/interruptible.ts';
import { jsonText, toPerson } from '../terminal/table.ts';

/**
 * What an upgrade finds. `isCluster`: control processes share the state, which a backup of one of them does not hold.
 */
type Plan = {
  schema: string;
  pending: string[];
  running: number;
  paused: number;
  openBuilds: number;
  isCluster: boolean;
};

/** Upgrades this machine's installation to this version. */
type Upgrade = {
  plan(): Promise<Plan>;
  /** Fails if a migration does, on a copy. */
  tryOut(signal: AbortSignal): Promise<void>;
  /** Path of a backup, named after the current time. */
  backupFile(): string;
  backup(file: string, signal: AbortSignal): Promise<void>;
  /** Restarts the service if it runs; false: the platform is started by hand. */
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
      if (plan.isCluster && values.backup !== undefined)
        throw new AtollError('precondition', `--backup: ${saveCluster} Nothing was changed.`);
      await interruptible(signal => upgrade.tryOut(signal));
      tell(plan.pending.length > 0 ? 'The migrations succeed on a copy of the state.\n' : '');
      if (values.check) {
        tell('Nothing was changed.\n');
        if (values.json) terminal.out(jsonText({ ...plan, backup: null, restarted: false }));
        return 0;
      }
      const file = plan.isCluster ? null : resolve(values.backup ?? upgrade.backupFile());
      if (file !== null) await interruptible(signal => upgrade.backup(file, signal));
      tell(file === null ? '' : `Backup: ${file}\n`);
      const wayBack = `The way back: the version of before, and ${dataOfBefore(plan, file)}.`;
      const start = plan.isCluster ? 'control' : 'up';
      const restarted = await upgrade.restart();
      if (restarted) tell(`The service runs with this version. ${wayBack}\n`);
      else tell(`Start this version now: end the platform with \`atoll stop\`, then \`atoll ${start}\`. ${wayBack}\n`);
      if (values.json) terminal.out(jsonText({ ...plan, backup: file, restarted }));
      return 0;
    },
  };
}

const saveCluster =
  'This is a control process of a cluster, which no backup is written of: save the database, the store and the seed ' +
  'yourself (docs/cluster.md).';

/** What the previous version continues with. */
function dataOfBefore({ pending }: Plan, file: string | null): string {
  if (pending.length === 0) return 'the same data directory';
  return file === null
    ? 'the database as you saved it before this'
    : `\`atoll restore ${file}\` into an empty data directory`;
}

function planText({ schema, pending, running, paused, openBuilds, isCluster }: Plan): string {
  const state =
    pending.length === 0
      ? `State: ${schema}, which this version uses as it is.\n`
      : `State: ${schema}. This version brings ${pending.join(', ')}, in one transaction: if it fails, the ` +
        `version of before goes on.\n`;
  const builds = openBuilds === 0 ? '' : `Builds under way: ${openBuilds}. They end, and have to be started again.\n`;
  const kept = `Sandboxes: ${running} running, ${paused} paused. They stay, and are taken over.\n`;
  return state + kept + builds + (isCluster ? `${saveCluster}\n` : '');
}
