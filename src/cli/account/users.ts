import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { credentialJson, credentialsText } from './credentials-text.ts';
import type { WithAccounts } from './local-accounts.ts';
import { confirm, jsonText, show } from '../terminal/table.ts';

/** `atoll user …` and `atoll token …`. */
export function userCommands(withAccounts: WithAccounts): Command[] {
  return [
    {
      name: 'user create',
      usage: 'NAME [--email ADDRESS] [--json]',
      summary: 'Makes a user and prints the ID',
      async run(args, terminal) {
        const options = { email: { type: 'string' }, json: { type: 'boolean' } } as const;
        const { values, positionals } = parseArguments(args, options, ['NAME']);
        const user = { name: positionals[0] ?? '', email: values.email ?? null };
        const userID = await withAccounts(accounts => accounts.createUser(user));
        terminal.out(values.json ? jsonText({ userID, ...user }) : `${userID}\n`);
        return 0;
      },
    },
    {
      name: 'user list',
      usage: '[--json]',
      summary: 'Lists the users',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const users = await withAccounts(accounts => accounts.listUsers());
        show(
          terminal,
          values.json,
          users.map(({ userId: userID, ...user }) => ({ userID, ...user })),
          [['ID', 'EMAIL', 'NAME'], ...users.map(({ userId, email, name }) => [userId, email ?? '', name])],
        );
        return 0;
      },
    },
    {
      name: 'user join',
      usage: '[--json] USER_ID TEAM_SLUG',
      summary: 'Makes a user a member of a team',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['USER_ID', 'TEAM_SLUG']);
        const [userID = '', slug = ''] = positionals;
        await withAccounts(accounts => accounts.join(userID, slug));
        confirm(terminal, values.json, { userID, slug }, 'Joined.');
        return 0;
      },
    },
    {
      name: 'user leave',
      usage: '[--json] USER_ID TEAM_SLUG',
      summary: 'Ends a membership',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['USER_ID', 'TEAM_SLUG']);
        const [userID = '', slug = ''] = positionals;
        await withAccounts(accounts => accounts.leave(userID, slug));
        confirm(terminal, values.json, { userID, slug }, 'Left.');
        return 0;
      },
    },
    ...tokenCommands(withAccounts),
  ];
}

function tokenCommands(withAccounts: WithAccounts): Command[] {
  return [
    {
      name: 'token create',
      usage: 'USER_ID [--name NAME] [--json]',
      summary: 'Makes an access token of a user and prints it, this once',
      async run(args, terminal) {
        const options = { name: { type: 'string' }, json: { type: 'boolean' } } as const;
        const { values, positionals } = parseArguments(args, options, ['USER_ID']);
        const { name = 'unnamed' } = values;
        const { id, text: token } = await withAccounts(accounts => accounts.createToken(positionals[0] ?? '', name));
        terminal.out(values.json ? jsonText({ id, name, token }) : `${token}\n`);
        return 0;
      },
    },
    {
      name: 'token list',
      usage: 'USER_ID [--json]',
      summary: 'Lists the access tokens of a user, masked',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['USER_ID']);
        const tokens = await withAccounts(accounts => accounts.listTokens(positionals[0] ?? ''));
        terminal.out(values.json ? jsonText(tokens.map(credentialJson)) : credentialsText(terminal, 'TOKEN', tokens));
        return 0;
      },
    },
    {
      name: 'token revoke',
      usage: '[--json] USER_ID TOKEN_ID',
      summary: 'Revokes an access token; it is refused from the next request on',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['USER_ID', 'TOKEN_ID']);
        const [userId = '', id = ''] = positionals;
        await withAccounts(accounts => accounts.revokeToken(userId, id));
        confirm(terminal, values.json, { id }, 'Revoked.');
        return 0;
      },
    },
  ];
}
