import { readdirSync } from 'node:fs';
import type { NodeContext } from '../context.ts';
import { slotOf } from '../layout.ts';
import { openNetworkNamespace } from '../native/netns.ts';
import { watch } from './blank.ts';
import { startTicksOf, type SandboxRecord } from './record.ts';
import { releaseSlot } from './release.ts';
import { onEnded } from './remove.ts';

/**
 * Takes over the sandboxes that ran on while the platform did not, and removes whatever else is there:
 * the same code after a clean stop, after a crash, and after a reboot of the host.
 */
export async function adoptSandboxes(node: NodeContext): Promise<{ adopted: number; removed: number }> {
  const known = node.records.list();
  const alive = known.flatMap(({ record }) => (record && startTicksOf(record.pid) === record.startTicks ? [record] : []));
  for (const record of alive) await adopt(node, record);
  const leftovers = [...leftoverSlots(node)].filter(number => !alive.some(record => record.slot === number));
  for (const number of leftovers) await releaseSlot(node, node.slots.occupy(number));
  for (const { sandboxId } of known) if (!node.running.has(sandboxId)) node.records.remove(sandboxId);
  return { adopted: alive.length, removed: leftovers.length };
}

async function adopt(node: NodeContext, record: SandboxRecord): Promise<void> {
  const slot = node.slots.occupy(record.slot);
  const { ended } = await watch(node, slot, record.pid);
  const running = { record, namespace: openNetworkNamespace(record.pid), ended };
  node.running.set(record.sandboxId, running);
  onEnded(node, running);
}

function leftoverSlots(node: NodeContext): Set<number> {
  const prefix = slotOf(node.layout.installation, 0).interfaceName.slice(0, -1);
  const links = readdirSync('/sys/class/net').filter(name => name.startsWith(prefix));
  const disks = readdirSync(node.layout.disks).flatMap(name => /^s(\d+)\.img$/.exec(name)?.[1] ?? []);
  return new Set([...node.driver.leftovers(), ...disks.map(Number), ...links.map(name => Number(name.slice(prefix.length)))]);
}
