import { createLog } from '../../base/telemetry/log.ts';
import { misuse, parseArguments } from '../../cli/terminal/arguments.ts';
import type { Command } from '../../cli/terminal/command.ts';
import { withProgress } from '../../cli/terminal/progress.ts';
import { goesDown, recordInstance } from '../platform/instance.ts';
import type { Settings } from '../settings/settings.ts';
import type { ServiceManager } from '../systemd/notify.ts';
import { runUntilStopped } from '../until-stopped.ts';
import { aboutOf, waysTo } from '../up.ts';

/** `atoll control` and `atoll node`: the two roles of a cluster's processes, in the foreground or as services. */
export function roleCommands(
  settings: () => Settings,
  environment: Record<string, string>,
  managed: ServiceManager,
): Command[] {
  return [controlCommand(settings, environment, managed), nodeCommand(settings, environment, managed)];
}

function controlCommand(
  settings: () => Settings,
  environment: Record<string, string>,
  managed: ServiceManager,
): Command {
  return {
    name: 'control',
    usage: '[--json | --service]',
    summary: 'Runs a control process of a cluster on PostgreSQL in the foreground; any number of equal ones do',
    async run(args, terminal) {
      const { values } = parseArguments(args, { json: { type: 'boolean' }, service: { type: 'boolean' } });
      return runUntilStopped(
        terminal,
        async signal => {
          const own = settings();
          const log = createLog(own.logLevel, terminal.err);
          const { startControl } = await import('./control.ts');
          const control = await withProgress(terminal, 'Starting', onPhase =>
            startControl({ settings: own, log, environment, onPhase, signal }),
          );
          const about = aboutOf(own, control);
          recordInstance(own.dataDir, waysTo(own, control));
          const serving = `Control serves at ${about.url}`;
          terminal.out(
            values.json
              ? `${JSON.stringify({ ...about, pid: process.pid })}\n`
              : `${serving}. \`atoll cluster invite\` prints the token for a machine.\n`,
          );
          return { ...control, serving };
        },
        values.service ? { command: 'control', manager: managed } : undefined,
      );
    },
  };
}

function nodeCommand(settings: () => Settings, environment: Record<string, string>, managed: ServiceManager): Command {
  return {
    name: 'node',
    usage: '[--control URL (--token TOKEN | --pod-token FILE)] [--json | --service]',
    summary:
      'Runs this machine as a node of a cluster in the foreground; the first time it joins by a token, in ' +
      "Kubernetes by that of the pod's service account",
    async run(args, terminal) {
      const { values } = parseArguments(args, {
        control: { type: 'string' },
        token: { type: 'string' },
        'pod-token': { type: 'string' },
        json: { type: 'boolean' },
        service: { type: 'boolean' },
      });
      const { control, token, 'pod-token': podTokenFile } = values;
      const invitation =
        control !== undefined && token !== undefined
          ? { control, token }
          : control !== undefined && podTokenFile !== undefined
            ? { control, podTokenFile }
            : undefined;
      const given = [control, token, podTokenFile].filter(value => value !== undefined).length;
      if (given !== (invitation ? 2 : 0)) throw misuse('--control goes with one of --token and --pod-token');
      return runUntilStopped(
        terminal,
        async signal => {
          const own = settings();
          const log = createLog(own.logLevel, terminal.err);
          const { startMachine } = await import('./machine.ts');
          const machine = await withProgress(terminal, 'Starting', onPhase =>
            startMachine({ settings: own, log, environment, onPhase, invitation, signal }),
          );
          const { nodeId, address } = machine;
          const serving = `Node ${nodeId} serves its cluster at ${address}`;
          terminal.out(values.json ? `${JSON.stringify({ nodeId, address, pid: process.pid })}\n` : `${serving}.\n`);
          return { ...machine, serving, goesDown: () => goesDown(own.dataDir) };
        },
        values.service ? { command: 'node', manager: managed } : undefined,
      );
    },
  };
}
