import { readFileSync } from 'node:fs';
import { messageOf } from '../../base/error.ts';
import { keepOnly } from '../../base/keep-only.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { outliving } from '../../base/telemetry/once-in-a-row.ts';
import type { SandboxResources } from '../../protocol/node.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import { usedByAllUs } from '../cgroup/used-by-all.ts';
import { cgroupRootOf, type Layout, type Slot } from '../layout.ts';
import { laterLoad, type Load } from './load.ts';
import type { Used } from './own-files.ts';
import { bootSeconds } from './boot-time.ts';
import { processorShares } from './processor-shares.ts';
import { quietTurns } from './quiet-turns.ts';
import { isHeavy, laterUse } from './recent-use.ts';

/** The greatest age of a sandbox's numbers while it visibly does something; see quiet-turns.ts. */
const refreshIntervalMs = 1_000;
/**
 * The interval has this many parts, and each sandbox has its turn in one, so that no request waits long for all of
 * them.
 */
const turns = 4;

type Running = {
  sandboxId: string;
  record: { executionId: string; resources: SandboxResources; startedAtMs: number };
  processes: {
    pid: number;
    slot: Slot;
    driver: {
      cgroupPath(slot: Slot): string;
      refreshOwnFiles(slot: Slot, resources: SandboxResources, used: Used): void;
    };
  };
};

type Known = {
  executionId: string;
  atMs: number;
  cpuSeconds: number;
  load: Load;
  busy: number;
  /** Processors that it has used recently, see recent-use.ts. */
  use: number;
  path: string;
  bootSeconds: number;
};

const unused: Pick<Known, 'load' | 'busy' | 'use'> = { load: [0, 0, 0], busy: 0, use: 0 };

/** What keeping the numbers current needs. */
type RefreshParts = {
  sandboxes: { running(): Running[] };
  cgroups: Pick<Cgroups, 'memory' | 'cpuUs' | 'forget' | 'cpuTimes' | 'tasks' | 'pins' | 'weigh'>;
  layout: Pick<Layout, 'installation'>;
  log: Log;
};

/**
 * Keeps each sandbox's own files about its use current. A sandbox that has used no processor time since its last turn
 * is skipped, because nobody reads there. Also moves busy sandboxes to processors with room, and makes those that
 * compute a lot come after others.
 */
export function startRefreshing({ sandboxes, cgroups, layout, log }: RefreshParts): { stop(): void } {
  const known = new Map<string, Known>();
  const quiet = quietTurns(() => usedByAllUs(cgroups, cgroupRootOf(layout)));
  const shares = processorShares(() => readFileSync('/proc/stat', 'latin1'));
  let turn = 0;

  const look = ({ sandboxId, record, processes: { pid, slot, driver } }: Running, nowMs: number) => {
    const path = driver.cgroupPath(slot);
    const cpuSeconds = cgroups.cpuUs(path) / 1e6;
    const last = known.get(sandboxId);
    if (last?.executionId !== record.executionId) {
      cgroups.pins.adopt(path);
      // An earlier process may have set another weight.
      cgroups.weigh(path, false);
      const { executionId } = record;
      known.set(sandboxId, { ...unused, executionId, atMs: nowMs, cpuSeconds, path, bootSeconds: bootSeconds(pid) });
      return;
    }
    const seconds = Math.max((nowMs - last.atMs) / 1000, Number.EPSILON);
    last.busy = (cpuSeconds - last.cpuSeconds) / seconds;
    weigh(last, laterUse(last.use, last.busy));
    if (last.busy === 0) return;
    last.load = laterLoad(last.load, last.busy, seconds);
    [last.atMs, last.cpuSeconds] = [nowMs, cpuSeconds];
    const livedSeconds = (Date.now() - record.startedAtMs) / 1000;
    const { userSeconds, systemSeconds } = cgroups.cpuTimes(path);
    const idleSeconds = Math.max(livedSeconds * record.resources.cpuCount - cpuSeconds, 0);
    driver.refreshOwnFiles(slot, record.resources, {
      memory: cgroups.memory(path),
      times: { userSeconds, systemSeconds, idleSeconds },
      load: last.load,
      tasks: cgroups.tasks(path),
      bootSeconds: last.bootSeconds,
    });
  };

  const weigh = (last: Known, use: number) => {
    if (isHeavy(use) !== isHeavy(last.use)) cgroups.weigh(last.path, isHeavy(use));
    last.use = use;
  };

  const lookOrSay = (sandbox: Running) => {
    try {
      look(sandbox, performance.now());
    } catch (error) {
      // A sandbox that is ending at this moment has nothing to read any more.
      const { sandboxId } = sandbox;
      log.debug('the numbers of a sandbox are not current', { sandboxId, error: messageOf(error) });
    }
  };

  const take = (sandboxesOfTurn: Running[]) => {
    const isNew = ({ sandboxId, record }: Running) => known.get(sandboxId)?.executionId !== record.executionId;
    if (quiet.pass(turn) && !sandboxesOfTurn.some(isNew)) return;
    for (const sandbox of sandboxesOfTurn) lookOrSay(sandbox);
    const uses = sandboxesOfTurn.map(({ sandboxId }) => known.get(sandboxId)?.use ?? 1);
    quiet.looked(turn, uses);
  };

  const turnOver = () => {
    turn = (turn + 1) % turns;
    const running = sandboxes.running();
    if (turn === 0) {
      keepOnly(
        known,
        running.map(({ sandboxId }) => sandboxId),
      );
      cgroups.pins.spread(new Map([...known.values()].map(({ path, busy }) => [path, busy])), shares());
    }
    take(running.filter(({ processes }) => processes.slot.number % turns === turn));
  };
  const outlived = outliving(turnOver, error => log.warn('the numbers of sandboxes are not current', { error }));
  const timer = setInterval(outlived, refreshIntervalMs / turns);
  return { stop: () => clearInterval(timer) };
}
