import { AtollError } from '../../base/error.ts';
import { jsonOption, misuse, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { confirm, momentText, show } from '../terminal/table.ts';

type Orphans = {
  sandboxes: { sandboxID: string; setAsideAt: string; reason: string }[];
  volumes: { volumeID: string; createdAt: string }[];
  unansweredNodeIDs?: string[];
};

/**
 * Commands for sandboxes and volumes that the store does not know: list, adopt, remove. `request` is the operator's.
 */
export function orphanCommands(request: PlatformRequest): Command[] {
  return [...sandboxCommands(request), ...volumeCommands(request)];
}

function sandboxCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'sandbox orphans',
      usage: '[--json]',
      summary: 'Lists sandboxes that were set aside, and volumes, because the database does not know them',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const orphans = (await request('GET', '/admin/orphans')) as Orphans;
        const rows = [
          ...orphans.sandboxes.map(({ sandboxID, setAsideAt, reason }) => [
            'sandbox',
            sandboxID,
            momentText(terminal, setAsideAt),
            reason,
          ]),
          ...orphans.volumes.map(({ volumeID, createdAt }) => [
            'volume',
            volumeID,
            momentText(terminal, createdAt),
            'the database does not know it',
          ]),
        ];
        show(terminal, values.json, orphans, [['KIND', 'ID', 'SINCE', 'WHY'], ...rows]);
        if (orphans.unansweredNodeIDs)
          terminal.err(`There may be more on nodes that did not answer: ${orphans.unansweredNodeIDs.join(', ')}\n`);
        return 0;
      },
    },
    {
      name: 'sandbox adopt',
      usage: 'SANDBOX_ID [--team SLUG] [--json]',
      summary: 'Gives a sandbox that was set aside to a team (default: the first one), as a paused one',
      async run(args, terminal) {
        const options = { team: { type: 'string' }, ...jsonOption } as const;
        const { values, positionals } = parseArguments(args, options, ['SANDBOX_ID']);
        const [sandboxID = ''] = positionals;
        const teamID = await teamId(request, values.team);
        await request('POST', `/admin/orphans/sandboxes/${encodeURIComponent(sandboxID)}/adopt`, { teamID });
        const adopted = { sandboxID, teamID, state: 'paused' };
        confirm(terminal, values.json, adopted, 'It is paused now; connect to it to let it run.');
        return 0;
      },
    },
    {
      name: 'sandbox discard',
      usage: '[--json] SANDBOX_ID',
      summary: 'Removes a sandbox that was set aside, with all that it has kept',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['SANDBOX_ID']);
        const [sandboxID = ''] = positionals;
        await request('DELETE', `/admin/orphans/sandboxes/${encodeURIComponent(sandboxID)}`);
        confirm(terminal, values.json, { sandboxID }, 'Removed.');
        return 0;
      },
    },
  ];
}

function volumeCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'volume adopt',
      usage: 'VOLUME_ID --name NAME [--team SLUG] [--json]',
      summary: 'Gives a volume that the database does not know to a team (default: the first one)',
      async run(args, terminal) {
        const options = { name: { type: 'string' }, team: { type: 'string' }, ...jsonOption } as const;
        const { values, positionals } = parseArguments(args, options, ['VOLUME_ID']);
        const { name } = values;
        if (name === undefined) throw misuse('--name is missing: what the volume is called from then on');
        const [volumeID = ''] = positionals;
        const teamID = await teamId(request, values.team);
        await request('POST', `/admin/orphans/volumes/${encodeURIComponent(volumeID)}/adopt/${teamID}`, { name });
        confirm(terminal, values.json, { volumeID, name, teamID }, 'Adopted.');
        return 0;
      },
    },
    {
      name: 'volume discard',
      usage: '[--json] VOLUME_ID',
      summary: 'Removes a volume that the database does not know, with all that is in it',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['VOLUME_ID']);
        const [volumeID = ''] = positionals;
        await request('DELETE', `/admin/orphans/volumes/${encodeURIComponent(volumeID)}`);
        confirm(terminal, values.json, { volumeID }, 'Removed.');
        return 0;
      },
    },
    {
      name: 'forget-unknown',
      usage: '[--json]',
      summary: 'After `up --accept-database`: lets go what templates and snapshots had that the database does not know',
      async run(args, terminal) {
        const { values } = parseArguments(args, jsonOption);
        await request('POST', '/admin/orphans/forget-unknown');
        confirm(terminal, values.json, {}, 'It is deleted soon.');
        return 0;
      },
    },
  ];
}

const firstTeamSlug = 'default';

async function teamId(request: PlatformRequest, slug = firstTeamSlug): Promise<string> {
  const teams = (await request('GET', '/admin/teams')) as { teamID: string; slug: string }[];
  const found = teams.find(team => team.slug === slug);
  if (!found) throw new AtollError('not_found', `There is no team ${slug}; \`atoll team list\` lists them.`);
  return found.teamID;
}
