import { jsonOption, misuse, parseArguments } from '../terminal/arguments.ts';
import type { Command, Terminal } from '../terminal/command.ts';
import { jsonText } from '../terminal/table.ts';
import { isSure } from '../terminal/sure.ts';

/** What a service runs: a platform of its own, or a part of a cluster. */
export type ServiceRole = 'platform' | 'control' | 'node';

/** How to make a service. `invitation`: by which a machine joins its cluster; a machine that has joined needs none. */
type InstallOptions = { start: boolean; role: ServiceRole; invitation: { control: string; token: string } | undefined };

/** Turns this machine's installation into a systemd service, and undoes that. */
export type ServiceControl = {
  /**
   * Writes the unit `name` and enables it; with `start`, also starts it and waits until it serves. Answers the unit's
   * file.
   */
  install(name: string, options: InstallOptions, terminal: Terminal): Promise<string>;
  /**
   * Ends the service and its sandboxes and removes the unit; with `data`, also all data of the installation. Answers
   * the data directory.
   */
  uninstall(name: string, options: { data: boolean }, terminal: Terminal): Promise<string>;
};

const defaultName = 'atoll';

/** `atoll install` and `atoll uninstall`. */
export function serviceCommands(control: ServiceControl): Command[] {
  return [
    {
      name: 'install',
      usage: '[--role control | --role node [--control URL --token TOKEN]] [--name NAME] [--no-start] [--json]',
      summary:
        'Makes a service of systemd of this installation, which starts with the machine; needs no terminal; --role ' +
        'makes one of a control process or a machine of a cluster, which joins by a token unless it has',
      async run(args, terminal) {
        const { values } = parseArguments(args, {
          name: { type: 'string' },
          role: { type: 'string' },
          control: { type: 'string' },
          token: { type: 'string' },
          'no-start': { type: 'boolean' },
          ...jsonOption,
        });
        const name = values.name ?? defaultName;
        const start = !values['no-start'];
        const [role, invitation] = [roleIn(values), invitationIn(values)];
        const file = await control.install(name, { start, role, invitation }, terminal);
        if (values.json) {
          terminal.out(jsonText({ name, file, role, running: start }));
          return 0;
        }
        terminal.out(
          `${file} is ${start ? 'running' : 'enabled'}. \`systemctl status ${name}\` says how it is, \`journalctl ` +
            `-u ${name}\` what it has said, \`atoll uninstall\` removes it.\n`,
        );
        return 0;
      },
    },
    {
      name: 'uninstall',
      usage: '[--name NAME] [--data [--yes]] [--json]',
      summary: 'Removes the service and ends its sandboxes; keeps all data, unless --data removes it too',
      async run(args, terminal) {
        const { values } = parseArguments(args, {
          name: { type: 'string' },
          data: { type: 'boolean' },
          yes: { type: 'boolean' },
          ...jsonOption,
        });
        const data = values.data ?? false;
        const question = 'This removes every template, volume, paused sandbox and key of the installation. Go on?';
        if (data && !values.yes && !(await isSure(terminal, question))) {
          terminal.err('Nothing was changed.\n');
          return 1;
        }
        const { name = defaultName } = values;
        const dataDir = await control.uninstall(name, { data }, terminal);
        if (values.json) {
          terminal.out(jsonText({ name, dataDir, removedData: data }));
          return 0;
        }
        terminal.out(
          data
            ? `The service and ${dataDir} are removed.\n`
            : `The service is removed. ${dataDir} is kept: \`atoll up\` or \`atoll install\` goes on with it.\n`,
        );
        return 0;
      },
    },
  ];
}

type Given = { role?: string | undefined; control?: string | undefined; token?: string | undefined };

function roleIn({ role = 'platform' }: Given): ServiceRole {
  if (role === 'platform' || role === 'control' || role === 'node') return role;
  throw misuse(`--role is ${JSON.stringify(role)}, and must be control or node; without it, for one machine alone`);
}

function invitationIn({ role, control, token }: Given): InstallOptions['invitation'] {
  if (control === undefined && token === undefined) return undefined;
  if (role === 'node' && control !== undefined && token !== undefined) return { control, token };
  throw misuse('--control and --token go together, and with --role node');
}
