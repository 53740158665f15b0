import { parseArguments } from '../../cli/terminal/arguments.ts';
import type { Command } from '../../cli/terminal/command.ts';
import { tableText } from '../../cli/terminal/table.ts';
import type { ShownSettings } from '../../protocol/api/installation.ts';
import { mergedSettings } from './file.ts';
import { readSettings, settingsTable } from './settings.ts';

const sourceText = { environment: 'environment', file: 'settings file', default: 'default' } as const;

/** `atoll config`: which settings are in force, and where each comes from. */
export function configCommand(environment: Record<string, string | undefined>): Command {
  return {
    name: 'config',
    usage: '[--json]',
    summary:
      'Lists the settings in force and where each comes from: the environment, the file `settings` in the data ' +
      'directory, or the default',
    async run(args, terminal) {
      const { values: options } = parseArguments(args, { json: { type: 'boolean' } });
      const shown = shownSettings(environment);
      if (options.json) terminal.out(`${JSON.stringify(shown, null, 2)}\n`);
      else terminal.out(`${tableOf(shown.settings)}\nThe settings file is ${shown.file}.\n`);
      return 0;
    },
  };
}

/** The settings in force and the source of each; secrets are hidden. Errors: `invalid`, as when reading them. */
export function shownSettings(environment: Record<string, string | undefined>): ShownSettings {
  const { values, sourceOf, file } = mergedSettings(environment);
  readSettings(values);
  const settings = Object.values(settingsTable).map(({ variable, fallback, isSecret }) => ({
    name: variable,
    value: shownValue(values[variable] || fallback, isSecret ?? false),
    source: sourceText[sourceOf(variable)],
  }));
  return { file, settings };
}

/** Never a password. */
function shownValue(value: string | undefined, isSecret: boolean): string | null {
  if (value === undefined) return null;
  if (isSecret) return '(hidden)';
  const [, scheme, rest] = /^([a-z]+:\/\/)([^@]*@)/i.exec(value) ?? [];
  return scheme === undefined || rest === undefined
    ? value
    : `${scheme}(hidden)@${value.slice(scheme.length + rest.length)}`;
}

const tableOf = (rows: ShownSettings['settings']) =>
  tableText([['NAME', 'VALUE', 'FROM'], ...rows.map(({ name, value, source }) => [name, value ?? '', source])]);
