import { parseArguments } from './arguments.ts';
import type { Command } from './command.ts';
import type { PlatformRequest } from './platform-request.ts';
import { tableText } from './table.ts';
import { templateBuildCommand } from './template-build.ts';

type Listed = { templateID: string; aliases: string[]; buildStatus: string; cpuCount: number; memoryMB: number; spawnCount: number };

/** `atoll template …`: what sandboxes are made from. */
export function templateCommands(request: PlatformRequest): Command[] {
  return [
    templateBuildCommand(request),
    {
      name: 'template list',
      usage: '[--json]',
      summary: 'Lists the templates of the running platform',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const templates = (await request('GET', '/templates')) as Listed[];
        const rows = templates.map(item => [item.templateID, item.aliases.join(', '), item.buildStatus, `${item.cpuCount} CPU, ${item.memoryMB} MiB`, String(item.spawnCount)]);
        terminal.out(values.json ? `${JSON.stringify(templates, null, 2)}\n` : tableText([['ID', 'NAMES', 'BUILD', 'SIZE', 'USED'], ...rows]));
        return 0;
      },
    },
  ];
}
