import { parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { credentialJson, credentialsText } from './credentials-text.ts';
import { jsonText } from '../terminal/table.ts';
import type { WithAccounts } from './local-accounts.ts';

const team = { team: { type: 'string' } } as const;

/** `atoll key …`. */
export function keyCommands(withAccounts: WithAccounts): Command[] {
  return [
    {
      name: 'key create',
      usage: '[--name NAME] [--team SLUG] [--json]',
      summary: 'Makes an API key and prints it, this once',
      async run(args, terminal) {
        const { values } = parseArguments(args, { name: { type: 'string' }, json: { type: 'boolean' }, ...team });
        const { name = 'unnamed' } = values;
        const { id, text: key } = await withAccounts(accounts => accounts.createKey(values.team, name));
        terminal.out(values.json ? jsonText({ id, name, key }) : `${key}\n`);
        return 0;
      },
    },
    {
      name: 'key list',
      usage: '[--team SLUG] [--json]',
      summary: 'Lists the API keys, masked',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' }, ...team });
        const keys = await withAccounts(accounts => accounts.listKeys(values.team));
        terminal.out(values.json ? jsonText(keys.map(credentialJson)) : credentialsText('KEY', keys));
        return 0;
      },
    },
    {
      name: 'key rename',
      usage: 'KEY_ID NAME [--team SLUG]',
      summary: 'Gives an API key another name',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, team, ['KEY_ID', 'NAME']);
        await withAccounts(accounts => accounts.renameKey(values.team, positionals[0] ?? '', positionals[1] ?? ''));
        terminal.err('Renamed.\n');
        return 0;
      },
    },
    {
      name: 'key revoke',
      usage: 'KEY_ID [--team SLUG]',
      summary: 'Revokes an API key; it is refused from the next request on',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, team, ['KEY_ID']);
        await withAccounts(accounts => accounts.revokeKey(values.team, positionals[0] ?? ''));
        terminal.err('Revoked.\n');
        return 0;
      },
    },
  ];
}
