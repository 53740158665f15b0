import { messageOf } from '../../base/error.ts';
import type { NodeContext, Paused, Running } from '../context.ts';
import { slotOf } from '../layout.ts';
import { inTurn } from './in-turn.ts';
import { sealKept } from './kept.ts';
import { releaseBlank } from './remove.ts';

/** How many stand still at a time: the memory of each is in use. */
const standingMax = 16;

/** Lets the frozen processes of a sandbox that was just paused stand for a while. */
export function letStand(node: NodeContext, paused: Paused, { record, namespace, ended }: Running): void {
  const timer = setTimeout(() => void endStanding(node, paused), node.standMs);
  timer.unref();
  paused.standing = { slot: slotOf(node.layout.installation, record.slot), namespace, ended, timer };
  node.standing.add(paused);
  // Something else may end them, e.g. the kernel for lack of memory.
  void ended.then(() => endStanding(node, paused));
  const [oldest] = node.standing;
  if (oldest && node.standing.size > standingMax) void endStanding(node, oldest);
}

/** Takes the standing processes of a paused sandbox, for whoever lets them go or ends them. */
export function takeStanding(node: NodeContext, paused: Paused): Paused['standing'] {
  const { standing } = paused;
  if (!standing) return undefined;
  clearTimeout(standing.timer);
  delete paused.standing;
  node.standing.delete(paused);
  return standing;
}

/** Ends the standing processes of a paused sandbox, if it has any. What was kept is all of it then. */
async function endStanding(node: NodeContext, paused: Paused): Promise<void> {
  await inTurn(paused, () => leaveStanding(node, paused)).catch(error => {
    node.log.error('what a paused sandbox used could not be freed', { sandboxId: paused.record.sandboxId, error: messageOf(error) });
  });
}

/** The same for who has the turn already. */
export async function leaveStanding(node: NodeContext, paused: Paused): Promise<void> {
  const standing = takeStanding(node, paused);
  if (!standing) return;
  node.driver.killFrozen(standing.slot);
  await releaseBlank(node, standing);
  await sealKept(node, paused.record.sandboxId);
}

/** Frees the memory of all that stand still. */
export async function endAllStanding(node: NodeContext): Promise<void> {
  await Promise.all([...node.standing].map(paused => endStanding(node, paused)));
}
