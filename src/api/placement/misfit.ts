import type { PauseFacts } from '../../protocol/cluster.ts';
import type { NodeInfo } from '../../protocol/node.ts';

/**
 * Why a paused sandbox can't go on at a machine; null where it can. With its memory it needs the same architecture, all
 * abilities of its processors, a kernel and a CRIU that are not older, and a copy of its agent; its files need the
 * driver.
 */
export function misfit(facts: PauseFacts, info: NodeInfo | undefined, memory: boolean): string | null {
  const there = info?.restores;
  if (!info || !there) return 'it has not said what it restores';
  const { architecture, kernel, criu, cpuFlags, agent } = facts.memory;
  if (there.architecture !== architecture) return `it is a ${there.architecture} machine, not ${architecture}`;
  const ability = info.memoryByDriver[facts.driver];
  if (!ability) return `it has no driver ${facts.driver}`;
  if (!memory || facts.kept === 'filesystem') return null;
  if (!ability.kept) return `memory is not kept there (${ability.reason})`;
  const flags = new Set(there.cpuFlags);
  const missing = cpuFlags.filter(flag => !flags.has(flag));
  if (missing.length > 0) return `its processors lack ${missing.slice(0, 8).join(', ')}`;
  if (isOlder(there.kernel, kernel)) return `its kernel ${there.kernel} is older than ${kernel}`;
  if (criu !== null && (there.criu === null || isOlder(there.criu, criu)))
    return `its CRIU ${there.criu ?? '(none)'} is older than ${criu}`;
  return [there.agent, ...(info.earlierAgents ?? [])].includes(agent) ? null : 'it has another build of the agent';
}

/** Compares the numbers at the start of versions, e.g. `6.1` of `6.1.0-13-amd64`. */
function isOlder(version: string, than: string): boolean {
  const [a, b] = [numbersOf(version), numbersOf(than)];
  for (const [index, number] of b.entries()) {
    const own = a[index] ?? 0;
    if (own !== number) return own < number;
  }
  return false;
}

const numbersOf = (version: string) => (/\d+(\.\d+)*/.exec(version)?.[0] ?? '').split('.').map(Number);
