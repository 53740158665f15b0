import { createLog } from '../../base/telemetry/log.ts';
import { parseArguments } from '../../cli/terminal/arguments.ts';
import type { Command } from '../../cli/terminal/command.ts';
import { withProgress } from '../../cli/terminal/progress.ts';
import { AtollError } from '../../base/error.ts';
import { recordInstance } from '../platform/instance.ts';
import type { Settings } from '../settings/settings.ts';
import { runUntilStopped } from '../until-stopped.ts';
import { aboutOf } from '../up.ts';

/** `atoll control` and `atoll node`: the two roles of a cluster's processes, in the foreground. */
export function roleCommands(settings: () => Settings, environment: Record<string, string>): Command[] {
  return [
    {
      name: 'control',
      usage: '[--json]',
      summary: 'Runs a control process of a cluster on PostgreSQL in the foreground; any number of equal ones do',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const own = settings();
        const log = createLog(own.logLevel, terminal.err);
        const { startControl } = await import('./control.ts');
        return runUntilStopped(terminal, async signal => {
          const control = await withProgress(terminal, 'Starting', onPhase =>
            startControl({ settings: own, log, environment, onPhase, signal }),
          );
          const about = aboutOf(own, control);
          recordInstance(own.dataDir, about.url);
          terminal.out(
            values.json
              ? `${JSON.stringify({ ...about, pid: process.pid })}\n`
              : `Control serves at ${about.url}. \`atoll cluster invite\` prints the token for a machine.\n`,
          );
          return control;
        });
      },
    },
    {
      name: 'node',
      usage: '[--control URL --token TOKEN] [--json]',
      summary: 'Runs this machine as a node of a cluster in the foreground; the first time it joins by a token',
      async run(args, terminal) {
        const { values } = parseArguments(args, {
          control: { type: 'string' },
          token: { type: 'string' },
          json: { type: 'boolean' },
        });
        if ((values.control === undefined) !== (values.token === undefined))
          throw new AtollError('invalid', '--control and --token go together');
        const own = settings();
        const log = createLog(own.logLevel, terminal.err);
        const invitation =
          values.control === undefined || values.token === undefined
            ? undefined
            : { control: values.control, token: values.token };
        const { startMachine } = await import('./machine.ts');
        return runUntilStopped(terminal, async signal => {
          const machine = await withProgress(terminal, 'Starting', onPhase =>
            startMachine({ settings: own, log, environment, onPhase, invitation, signal }),
          );
          const { nodeId, address } = machine;
          terminal.out(
            values.json
              ? `${JSON.stringify({ nodeId, address, pid: process.pid })}\n`
              : `Node ${nodeId} serves its cluster at ${address}.\n`,
          );
          return machine;
        });
      },
    },
  ];
}
