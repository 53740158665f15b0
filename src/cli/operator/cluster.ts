import { clusterUpgradeCommand } from './cluster-upgrade.ts';
import { parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';

/** Commands with which machines come into a cluster and leave it. `request` is the operator's. */
export function clusterCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'cluster invite',
      usage: '',
      summary: 'Prints a token with which one machine can join this cluster within an hour',
      async run(args, terminal) {
        parseArguments(args, {});
        const { token } = (await request('POST', '/admin/cluster/invites')) as { token: string };
        terminal.out(`${token}\n`);
        return 0;
      },
    },
    clusterUpgradeCommand({ request }),
    {
      name: 'node forget',
      usage: 'NODE_ID',
      summary: 'Forgets a machine for good: its certificate is revoked, and what only it had is lost',
      async run(args) {
        const { positionals } = parseArguments(args, {}, ['NODE_ID']);
        await request('DELETE', `/admin/nodes/${encodeURIComponent(positionals[0] ?? '')}`);
        return 0;
      },
    },
  ];
}
