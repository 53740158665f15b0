import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { WithAccounts } from './local-accounts.ts';
import { confirm, jsonText, show } from '../terminal/table.ts';

/** `atoll team …`. */
export function teamCommands(withAccounts: WithAccounts): Command[] {
  return [
    {
      name: 'team create',
      usage: '[--json] SLUG NAME',
      summary: 'Makes a team; its slug is the namespace of its templates',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['SLUG', 'NAME']);
        const [slug = '', name = ''] = positionals;
        const teamID = await withAccounts(accounts => accounts.createTeam({ name, slug }));
        terminal.out(values.json ? jsonText({ teamID, slug, name }) : `${teamID}\n`);
        return 0;
      },
    },
    {
      name: 'team list',
      usage: '[--json]',
      summary: 'Lists the teams',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const teams = await withAccounts(accounts => accounts.listTeams());
        const rows = teams.map(({ teamId, slug, name, banned, blocked }) => [
          teamId,
          slug,
          banned ? 'banned' : blocked ? 'blocked' : 'active',
          name,
        ]);
        show(
          terminal,
          values.json,
          teams.map(({ teamId: teamID, ...team }) => ({ teamID, ...team })),
          [['ID', 'SLUG', 'STATE', 'NAME'], ...rows],
        );
        return 0;
      },
    },
    {
      name: 'team rename',
      usage: '[--json] SLUG NAME',
      summary: 'Gives a team another name; its slug stays',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['SLUG', 'NAME']);
        const [slug = '', name = ''] = positionals;
        await withAccounts(accounts => accounts.renameTeam(slug, name));
        confirm(terminal, values.json, { slug, name }, 'Renamed.');
        return 0;
      },
    },
  ];
}
