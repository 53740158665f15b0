import { clusterUpgradeCommand } from './cluster-upgrade.ts';
import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { confirm, jsonText } from '../terminal/table.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';

/** Commands with which machines come into a cluster and leave it. `request` is the operator's. */
export function clusterCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'cluster invite',
      usage: '[--json]',
      summary: 'Prints a token with which one machine can join this cluster within an hour',
      async run(args, terminal) {
        const { values } = parseArguments(args, jsonOption);
        const invite = (await request('POST', '/admin/cluster/invites')) as { token: string };
        terminal.out(values.json ? jsonText(invite) : `${invite.token}\n`);
        return 0;
      },
    },
    clusterUpgradeCommand({ request }),
    {
      name: 'node forget',
      usage: '[--json] NODE_ID',
      summary: 'Forgets a machine for good: its certificate is revoked, and what only it had is lost',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['NODE_ID']);
        const [id = ''] = positionals;
        await request('DELETE', `/admin/nodes/${encodeURIComponent(id)}`);
        confirm(terminal, values.json, { id }, 'Forgotten.');
        return 0;
      },
    },
  ];
}
