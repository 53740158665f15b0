import { AtollError } from '../../base/error.ts';
import { jsonOption, misuse, parseArguments } from '../terminal/arguments.ts';
import type { Command, Input } from '../terminal/command.ts';
import { confirm } from '../terminal/table.ts';
import type { Connection, SavedLogin } from './connection.ts';

/** `atoll login` and `atoll logout`. `check` asks the installation whether it accepts the key, and throws if not. */
export function loginCommands(saved: SavedLogin, check: (connection: Connection) => Promise<void>): Command[] {
  return [
    {
      name: 'login',
      usage: 'URL [--key KEY] [--domain DOMAIN] [--json]',
      summary:
        'Makes the commands for sandboxes speak to another installation; without --key, the key is read from the input',
      async run(args, terminal) {
        const options = { key: { type: 'string' }, domain: { type: 'string' }, ...jsonOption } as const;
        const { values, positionals } = parseArguments(args, options, ['URL']);
        const url = urlOf(positionals[0] ?? '');
        if (values.key === undefined && terminal.input?.isTerminal) terminal.err('API key: ');
        const apiKey = (values.key ?? (await firstLine(terminal.input))).trim();
        if (apiKey === '')
          throw new AtollError('invalid', 'No API key was given: use --key, or write it to the input.');
        const connection = { url: url.origin, apiKey, domain: values.domain ?? url.host };
        await check(connection);
        const file = saved.save(connection);
        const { apiKey: _, ...shown } = connection;
        confirm(terminal, values.json, shown, `Signed in; kept in ${file}.`);
        return 0;
      },
    },
    {
      name: 'logout',
      usage: '[--json]',
      summary: 'Forgets the login, so that commands speak to the installation of this machine again',
      async run(args, terminal) {
        const { values } = parseArguments(args, jsonOption);
        const forgotten = saved.forget();
        confirm(terminal, values.json, { forgotten }, forgotten ? 'Forgotten.' : 'There was no login.');
        return 0;
      },
    },
  ];
}

function urlOf(text: string): URL {
  const url = URL.parse(text);
  if (url && ['http:', 'https:'].includes(url.protocol)) return url;
  throw misuse(
    `URL is ${JSON.stringify(text)}, and must be that of an installation, like https://sandboxes.example.com`,
  );
}

/** No key is longer. */
const lineBytesMax = 1024;

async function firstLine(input: Input | undefined): Promise<string> {
  let text = '';
  for await (const chunk of input?.chunks() ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes('\n') || text.length > lineBytesMax) break;
  }
  return text.split('\n')[0] ?? '';
}
