import { AtollError } from '../base/error.ts';
import { jsonOption, parseArguments } from './terminal/arguments.ts';
import type { Command } from './terminal/command.ts';
import type { PlatformRequest } from './connection/platform-request.ts';
import type { RestoredVolume } from '../protocol/api/volume.ts';
import { confirm, jsonText, momentText, show } from './terminal/table.ts';

type Listed = { volumeID: string; name: string; copiedAt?: string };
type Volume = Listed & { token: string };

/** Commands that make, list and delete volumes. Sandboxes mount them, and programs write to them there. */
export function volumeCommands(request: PlatformRequest): Command[] {
  const list = async () => (await request('GET', '/volumes')) as Listed[];
  const idOf = async (wanted = '') => {
    const volumes = await list();
    const volume = volumes.find(({ name }) => name === wanted) ?? volumes.find(({ volumeID }) => volumeID === wanted);
    if (!volume)
      throw new AtollError(
        'not_found',
        `There is no volume with the name or ID "${wanted}". \`atoll volume list\` shows those that there are.`,
      );
    return volume.volumeID;
  };
  const pathOf = async (wanted?: string) => pathOfVolume(await idOf(wanted));
  return [
    {
      name: 'volume create',
      usage: '[--json] NAME',
      summary: 'Makes a volume and prints its ID',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['NAME']);
        const volume = withoutToken((await request('POST', '/volumes', { name: positionals[0] })) as Volume);
        terminal.out(values.json ? jsonText(volume) : `${volume.volumeID}\n`);
        return 0;
      },
    },
    {
      name: 'volume list',
      usage: '[--json]',
      summary: 'Lists the volumes',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const volumes = await list();
        const rows = volumes.map(({ volumeID, name, copiedAt }) => [
          volumeID,
          name,
          ...(copiedAt ? [momentText(terminal, copiedAt)] : []),
        ]);
        const isCopied = volumes.some(({ copiedAt }) => copiedAt !== undefined);
        show(terminal, values.json, volumes, [['ID', 'NAME', ...(isCopied ? ['COPIED'] : [])], ...rows]);
        return 0;
      },
    },
    {
      name: 'volume info',
      usage: '[--json] [--token] VOLUME',
      summary: 'Shows a volume, by its name or ID; --token prints a new token for its content alone',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(
          args,
          { json: { type: 'boolean' }, token: { type: 'boolean' } },
          ['VOLUME'],
        );
        const volume = (await request('GET', await pathOf(positionals[0]))) as Volume;
        if (values.token) terminal.out(`${volume.token}\n`);
        else show(terminal, values.json, withoutToken(volume), Object.entries(withoutToken(volume)));
        return 0;
      },
    },
    restoreCommand(request, pathOf),
    deleteCommand(request, idOf),
  ];
}

const pathOfVolume = (volumeID: string) => `/volumes/${encodeURIComponent(volumeID)}`;

function deleteCommand(request: PlatformRequest, idOf: (wanted?: string) => Promise<string>): Command {
  return {
    name: 'volume delete',
    usage: '[--json] VOLUME',
    summary: 'Deletes a volume that no sandbox has, by its name or ID, with all that is in it',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(args, jsonOption, ['VOLUME']);
      const volumeID = await idOf(positionals[0]);
      await request('DELETE', pathOfVolume(volumeID));
      confirm(terminal, values.json, { volumeID }, 'Deleted.');
      return 0;
    },
  };
}

function restoreCommand(request: PlatformRequest, pathOf: (wanted?: string) => Promise<string>): Command {
  return {
    name: 'volume restore',
    usage: '[--json] VOLUME',
    summary: 'Makes a volume whose machine of a cluster is lost of its newest copy again, by its name or ID',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['VOLUME']);
      const restored = (await request('POST', `${await pathOf(positionals[0])}/restore`)) as RestoredVolume;
      if (values.json) terminal.out(jsonText(restored));
      const { copiedAt, ageSeconds } = restored;
      terminal.err(`It is as it was at ${copiedAt}, ${ageSeconds} s ago. What was written later is lost.\n`);
      return 0;
    },
  };
}

/** A user who copies from a list must not copy a token with it. */
function withoutToken({ volumeID, name }: Volume): Listed {
  return { volumeID, name };
}
