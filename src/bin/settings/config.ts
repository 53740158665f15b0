import { parseArguments } from '../../cli/terminal/arguments.ts';
import type { Command } from '../../cli/terminal/command.ts';
import { tableText } from '../../cli/terminal/table.ts';
import { mergedSettings } from './file.ts';
import { readSettings, settingsTable } from './settings.ts';

const sourceText = { environment: 'environment', file: 'settings file', default: 'default' } as const;

/** `atoll config`: which settings are in force, and who says so. */
export function configCommand(environment: Record<string, string | undefined>): Command {
  return {
    name: 'config',
    usage: '[--json]',
    summary:
      'Lists the settings in force and where each comes from: the environment, the file `settings` in the data ' +
      'directory, or the default',
    async run(args, terminal) {
      const { values: options } = parseArguments(args, { json: { type: 'boolean' } });
      const { values, sourceOf, file } = mergedSettings(environment);
      readSettings(values);
      const rows = Object.values(settingsTable).map(({ variable, fallback, isSecret }) => ({
        name: variable,
        value: shown(values[variable] || fallback, isSecret ?? false),
        source: sourceText[sourceOf(variable)],
      }));
      if (options.json) terminal.out(`${JSON.stringify({ file, settings: rows }, null, 2)}\n`);
      else terminal.out(`${tableOf(rows)}\nThe settings file is ${file}.\n`);
      return 0;
    },
  };
}

/** Never a password. */
function shown(value: string | undefined, isSecret: boolean): string | null {
  if (value === undefined) return null;
  if (isSecret) return '(hidden)';
  const [, scheme, rest] = /^([a-z]+:\/\/)([^@]*@)/i.exec(value) ?? [];
  return scheme === undefined || rest === undefined
    ? value
    : `${scheme}(hidden)@${value.slice(scheme.length + rest.length)}`;
}

const tableOf = (rows: { name: string; value: string | null; source: string }[]) =>
  tableText([['NAME', 'VALUE', 'FROM'], ...rows.map(({ name, value, source }) => [name, value ?? '', source])]);
