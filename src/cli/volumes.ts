import { parseArguments } from './arguments.ts';
import type { Command } from './command.ts';
import type { PlatformRequest } from './platform-request.ts';
import { tableText } from './table.ts';

type Listed = { volumeID: string; name: string };

/** Seeing which volumes the installation's first team has, and deleting one. */
export function volumeCommands(request: PlatformRequest): Command[] {
  const list = async () => (await request('GET', '/volumes')) as Listed[];
  return [
    {
      name: 'volume list',
      usage: '[--json]',
      summary: 'Lists the volumes',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const volumes = await list();
        terminal.out(values.json ? `${JSON.stringify(volumes, null, 2)}\n` : tableText([['ID', 'NAME'], ...volumes.map(({ volumeID, name }) => [volumeID, name])]));
        return 0;
      },
    },
    {
      name: 'volume delete',
      usage: 'NAME_OR_ID',
      summary: 'Deletes a volume that no sandbox has, with all that is in it',
      async run(args, terminal) {
        const { positionals } = parseArguments(args, {}, ['NAME_OR_ID']);
        const wanted = positionals[0] ?? '';
        const id = (await list()).find(({ name }) => name === wanted)?.volumeID ?? wanted;
        await request('DELETE', `/volumes/${encodeURIComponent(id)}`);
        terminal.err('Deleted.\n');
        return 0;
      },
    },
  ];
}
