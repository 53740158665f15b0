import { AtollError } from '../../base/error.ts';
import { parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { show } from '../terminal/table.ts';

type Orphans = {
  sandboxes: { sandboxID: string; setAsideAt: string; reason: string }[];
  volumes: { volumeID: string; createdAt: string }[];
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
          ...orphans.sandboxes.map(({ sandboxID, setAsideAt, reason }) => ['sandbox', sandboxID, setAsideAt, reason]),
          ...orphans.volumes.map(({ volumeID, createdAt }) => [
            'volume',
            volumeID,
            createdAt,
            'the database does not know it',
          ]),
        ];
        show(terminal, values.json, orphans, [['KIND', 'ID', 'SINCE', 'WHY'], ...rows]);
        return 0;
      },
    },
    {
      name: 'sandbox adopt',
      usage: 'SANDBOX_ID [--team SLUG]',
      summary: 'Gives a sandbox that was set aside to a team (default: the first one), as a paused one',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { team: { type: 'string' } }, ['SANDBOX_ID']);
        await request('POST', `/admin/orphans/sandboxes/${encodeURIComponent(positionals[0] ?? '')}/adopt`, {
          teamID: await teamId(request, values.team),
        });
        terminal.err('It is paused now; connect to it to let it run.\n');
        return 0;
      },
    },
    {
      name: 'sandbox discard',
      usage: 'SANDBOX_ID',
      summary: 'Removes a sandbox that was set aside, with all that it has kept',
      async run(args, terminal) {
        await request('DELETE', `/admin/orphans/sandboxes/${one(args, 'SANDBOX_ID')}`);
        terminal.err('Removed.\n');
        return 0;
      },
    },
  ];
}

function volumeCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'volume adopt',
      usage: 'VOLUME_ID --name NAME [--team SLUG]',
      summary: 'Gives a volume that the database does not know to a team (default: the first one)',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { name: { type: 'string' }, team: { type: 'string' } }, [
          'VOLUME_ID',
        ]);
        const volume = encodeURIComponent(positionals[0] ?? '');
        const team = await teamId(request, values.team);
        await request('POST', `/admin/orphans/volumes/${volume}/adopt/${team}`, { name: values.name ?? '' });
        terminal.err('Adopted.\n');
        return 0;
      },
    },
    {
      name: 'volume discard',
      usage: 'VOLUME_ID',
      summary: 'Removes a volume that the database does not know, with all that is in it',
      async run(args, terminal) {
        await request('DELETE', `/admin/orphans/volumes/${one(args, 'VOLUME_ID')}`);
        terminal.err('Removed.\n');
        return 0;
      },
    },
    {
      name: 'forget-unknown',
      usage: '',
      summary: 'After `up --accept-database`: lets go what templates and snapshots had that the database does not know',
      async run(args, terminal) {
        parseArguments(args, {});
        await request('POST', '/admin/orphans/forget-unknown');
        terminal.err('It is deleted soon.\n');
        return 0;
      },
    },
  ];
}

/** The one ID that a command takes, for a path. */
function one(args: string[], operand: string): string {
  return encodeURIComponent(parseArguments(args, {}, [operand]).positionals[0] ?? '');
}

const firstTeamSlug = 'default';

async function teamId(request: PlatformRequest, slug = firstTeamSlug): Promise<string> {
  const teams = (await request('GET', '/admin/teams')) as { teamID: string; slug: string }[];
  const found = teams.find(team => team.slug === slug);
  if (!found) throw new AtollError('not_found', `There is no team ${slug}; \`atoll team list\` lists them.`);
  return found.teamID;
}
