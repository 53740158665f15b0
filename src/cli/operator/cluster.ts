import { counted } from '../../base/counted.ts';
import type { NodeDrain, NodeForgotten } from '../../protocol/api/drain.ts';
import { clusterUpgradeCommand } from './cluster-upgrade.ts';
import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { isSure as askWhetherSure } from '../terminal/sure.ts';
import { confirm, jsonText } from '../terminal/table.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';

/**
 * Commands by which machines join and leave a cluster. `request` is the operator's. `isSure`: asks a person at the
 * keyboard.
 */
export function clusterCommands(request: PlatformRequest, isSure = askWhetherSure): Command[] {
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
      usage: '[--yes] [--json] NODE_ID',
      summary: 'Forgets a machine for good: its certificate is revoked, and what only it had is lost',
      async run(args, terminal) {
        const options = { yes: { type: 'boolean' }, ...jsonOption } as const;
        const { values, positionals } = parseArguments(args, options, ['NODE_ID']);
        const [id = ''] = positionals;
        const path = `/admin/nodes/${encodeURIComponent(id)}`;
        if (!values.yes) {
          // In this mode the machine is not asked: it may be gone.
          const there = (await request('GET', `${path}/drain?mode=wait`)) as NodeDrain;
          if (!(await isSure(terminal, `${lossesOf(there)} Go on?`))) {
            terminal.err('Nothing was changed.\n');
            return 1;
          }
        }
        const forgotten = (await request('DELETE', path)) as NodeForgotten;
        const { lost, stored } = forgotten;
        confirm(terminal, values.json, { id, lost, stored }, forgottenText(forgotten));
        return 0;
      },
    },
  ];
}

const sandboxes = (count: number, kind = '') => counted(count, `${kind}sandbox`, `${kind}sandboxes`);

/** What would be lost with a machine, in the words of the question beforehand. */
function lossesOf({ nodeID, sandboxes: running, kept }: NodeDrain): string {
  const lost = [
    ...(running.length > 0 ? [`${sandboxes(running.length)} that ${running.length === 1 ? 'runs' : 'run'}`] : []),
    ...(kept.sandboxes > 0 ? [`${sandboxes(kept.sandboxes, 'paused ')} on its disk alone`] : []),
    ...(kept.volumes > 0 ? [`${counted(kept.volumes, 'volume')} without a copy`] : []),
  ];
  const what =
    lost.length === 0 ? 'it has nothing that would be lost' : `what it alone has is lost: ${lost.join(', ')}`;
  return `Node ${nodeID} is forgotten for good; ${what}.`;
}

/** What was lost, and what was not. */
function forgottenText({ lost, stored }: NodeForgotten): string {
  const gone = [
    ...(lost.sandboxes > 0 ? [sandboxes(lost.sandboxes)] : []),
    ...(lost.volumes > 0 ? [counted(lost.volumes, 'volume')] : []),
  ];
  const were = lost.sandboxes + lost.volumes > 1 ? 'were' : 'was';
  const kept = stored > 0 ? ` ${sandboxes(stored, 'paused ')} of it ${stored === 1 ? 'is' : 'are'} in the store.` : '';
  return `Forgotten: ${gone.join(' and ') || 'nothing'} ${were} lost.${kept}`;
}
