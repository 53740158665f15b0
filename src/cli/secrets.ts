import { AtollError } from '../base/error.ts';
import { parseArguments } from './terminal/arguments.ts';
import type { Command, Terminal } from './terminal/command.ts';
import { readAll } from './terminal/input-text.ts';
import { pairsOf } from './terminal/pairs.ts';
import type { PlatformList, PlatformRequest } from './connection/platform-request.ts';
import { confirm, jsonText, momentText, show } from './terminal/table.ts';

type Secret = { secretID: string; name: string; currentVersion: number; updatedAt: string };

const options = { json: { type: 'boolean' }, metadata: { type: 'string', multiple: true } } as const;
const pathOf = (name: string | undefined) => `/secrets/${encodeURIComponent(name ?? '')}`;

/**
 * `atoll secret …`: values that sandboxes' requests carry but no sandbox sees. They are read from the input, where no
 * other program can list them.
 */
export function secretCommands(request: PlatformRequest, list: PlatformList): Command[] {
  return [
    {
      name: 'secret create',
      usage: '[--metadata NAME=VALUE]... [--json] NAME',
      summary: 'Keeps the value that it reads from its input under a name',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, options, ['NAME']);
        const secret = (await request('POST', '/secrets', {
          name: positionals[0],
          value: await valueOf(terminal),
          ...(values.metadata && { metadata: pairsOf('--metadata', values.metadata) }),
        })) as Secret;
        terminal.out(values.json ? jsonText(secret) : `${secret.secretID}\n`);
        return 0;
      },
    },
    {
      name: 'secret update',
      usage: '[--metadata NAME=VALUE]... [--json] SECRET',
      summary: 'Gives a secret the value that it reads from its input; running sandboxes use it from then on',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, options, ['SECRET']);
        const secret = await request('POST', pathOf(positionals[0]), {
          value: await valueOf(terminal),
          ...(values.metadata && { metadata: pairsOf('--metadata', values.metadata) }),
        });
        confirm(terminal, values.json, secret, 'Updated.');
        return 0;
      },
    },
    {
      name: 'secret list',
      usage: '[--json]',
      summary: 'Lists the secrets, without their values',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: options.json });
        const secrets = (await list('/secrets')) as Secret[];
        const rows = secrets.map(secret => [
          secret.secretID,
          secret.name,
          String(secret.currentVersion),
          momentText(terminal, secret.updatedAt),
        ]);
        show(terminal, values.json, secrets, [['ID', 'NAME', 'VERSION', 'UPDATED'], ...rows]);
        return 0;
      },
    },
    {
      name: 'secret delete',
      usage: '[--json] SECRET',
      summary: 'Deletes a secret, by its name or ID; running sandboxes lose it',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: options.json }, ['SECRET']);
        await request('DELETE', pathOf(positionals[0]));
        confirm(terminal, values.json, { secretID: positionals[0] }, 'Deleted.');
        return 0;
      },
    },
  ];
}

/** The whole input without the line break that `echo` and Return append. Fails with `invalid` if it is empty. */
async function valueOf(terminal: Terminal): Promise<string> {
  if (terminal.input?.isTerminal) terminal.err('Value: ');
  const value = (await readAll(terminal.input)).replace(/\r?\n$/, '');
  if (value === '') throw new AtollError('invalid', 'No value was given: write it to the input.');
  return value;
}
