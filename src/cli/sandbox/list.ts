import { parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { PlatformList, PlatformRequest } from '../connection/platform-request.ts';
import { momentText, show } from '../terminal/table.ts';
import { killCommand } from './kill.ts';

/** The part of a listed sandbox that the table shows. */
type Listed = {
  sandboxID: string;
  alias?: string;
  templateID: string;
  state: string;
  startedAt: string;
  endAt: string;
  cpuCount: number;
  memoryMB: number;
};

/** `atoll sandbox …`: what runs, and ending it. */
export function sandboxCommands(request: PlatformRequest, list: PlatformList): Command[] {
  return [
    {
      name: 'sandbox list',
      usage: '[--json]',
      summary: 'Lists the sandboxes of the running platform',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const sandboxes = (await list('/v2/sandboxes')) as Listed[];
        const rows = sandboxes.map(item => [
          item.sandboxID,
          item.alias ?? item.templateID,
          item.state,
          momentText(terminal, item.startedAt),
          item.state === 'paused' ? '-' : momentText(terminal, item.endAt),
          `${item.cpuCount} CPU, ${item.memoryMB} MiB`,
        ]);
        show(terminal, values.json, sandboxes, [['ID', 'TEMPLATE', 'STATE', 'STARTED', 'ENDS', 'SIZE'], ...rows]);
        return 0;
      },
    },
    killCommand(request, list),
  ];
}
