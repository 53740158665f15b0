import { parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { PlatformFollow, PlatformRequest } from '../connection/platform-request.ts';
import { show } from '../terminal/table.ts';
import { templateBuildCommands } from './build.ts';
import { templateChangeCommands } from './change.ts';

type Listed = {
  templateID: string;
  aliases: string[];
  buildStatus: string;
  cpuCount: number;
  memoryMB: number;
  spawnCount: number;
};

/**
 * `atoll template …`: what sandboxes are made from. `shippedFolder`: finds the definition of a template that comes with
 * Atoll.
 */
export function templateCommands(
  request: PlatformRequest,
  follow: PlatformFollow,
  shippedFolder: (name: string) => string | undefined,
): Command[] {
  return [
    ...templateBuildCommands(request, follow, shippedFolder),
    ...templateChangeCommands(request),
    {
      name: 'template list',
      usage: '[--json]',
      summary: 'Lists the templates of the running platform',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const templates = (await request('GET', '/templates')) as Listed[];
        const rows = templates.map(item => [
          item.templateID,
          item.aliases.join(', '),
          item.buildStatus,
          `${item.cpuCount} CPU, ${item.memoryMB} MiB`,
          String(item.spawnCount),
        ]);
        show(terminal, values.json, templates, [['ID', 'NAMES', 'BUILD', 'SIZE', 'USED'], ...rows]);
        return 0;
      },
    },
  ];
}
