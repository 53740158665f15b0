import { parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { credentialJson, credentialsText } from './credentials-text.ts';
import { confirm, jsonText } from '../terminal/table.ts';
import type { WithAccounts } from './local-accounts.ts';

const options = { team: { type: 'string' }, json: { type: 'boolean' } } as const;

/** `atoll key …`. */
export function keyCommands(withAccounts: WithAccounts): Command[] {
  return [
    {
      name: 'key create',
      usage: '[--name NAME] [--team SLUG] [--json]',
      summary: 'Makes an API key and prints it, this once',
      async run(args, terminal) {
        const { values } = parseArguments(args, { name: { type: 'string' }, ...options });
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
        const { values } = parseArguments(args, options);
        const keys = await withAccounts(accounts => accounts.listKeys(values.team));
        terminal.out(values.json ? jsonText(keys.map(credentialJson)) : credentialsText(terminal, 'KEY', keys));
        return 0;
      },
    },
    {
      name: 'key rename',
      usage: 'KEY_ID NAME [--team SLUG] [--json]',
      summary: 'Gives an API key another name',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, options, ['KEY_ID', 'NAME']);
        const [id = '', name = ''] = positionals;
        await withAccounts(accounts => accounts.renameKey(values.team, id, name));
        confirm(terminal, values.json, { id, name }, 'Renamed.');
        return 0;
      },
    },
    {
      name: 'key revoke',
      usage: 'KEY_ID [--team SLUG] [--json]',
      summary: 'Revokes an API key; it is refused from the next request on',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, options, ['KEY_ID']);
        const [id = ''] = positionals;
        await withAccounts(accounts => accounts.revokeKey(values.team, id));
        confirm(terminal, values.json, { id }, 'Revoked.');
        return 0;
      },
    },
  ];
}
