import type { Kept, SandboxNetwork, SandboxResources, TemplateImage } from '../../../protocol/node.ts';
import type { DriverName } from '../../../protocol/driver.ts';
import type { SandboxVolume } from '../../../protocol/volume.ts';

/** What is recorded of a sandbox in every state that it can be found in after a crash. */
type Known = {
  sandboxId: string;
  executionId: string;
  /** Whose it is. Absent in records from before nodes were told of teams. */
  teamId?: string;
  /** Lets the platform give the agent new settings. The file is readable by root alone. */
  controlToken: string;
  /** What its programs read as the kernel's boot ID (UUID). */
  bootId: string;
  resources: SandboxResources;
  network: SandboxNetwork;
  /** What its root is made from: these layers are not collected. */
  image: TemplateImage;
  /** The copy of the agent that its processes were started from. */
  agentDir: string;
  /** What isolates it. */
  driver: DriverName;
  startedAtMs: number;
  volumes: SandboxVolume[];
};

/** The processes of a sandbox on this host. */
export type ProcessPlace = {
  slot: number;
  pid: number;
  /** When the process `pid` started, in clock ticks since boot: a number that was used again is another process. */
  startTicks: number;
};

/** What a node must know about a running sandbox after it was restarted itself. */
export type RunningRecord = Known &
  ProcessPlace & {
    state: 'running';
    /** Null where the sandbox was created. */
    resumedFrom: Kept | null;
  };

/** What a node must know to resume a paused sandbox, also after the host was restarted. */
export type PausedRecord = Known & {
  state: 'paused';
  kept: Kept;
  pausedAtMs: number;
  /** Its memory was kept while its agent did not answer: a restore brings that agent back. */
  agentUnresponsive?: true;
  /**
   * The processes that its memory was kept of, which may still be there. While they are frozen, none has run since. If
   * they run, a crash has undone the pause before anybody was told of it.
   */
  frozen: ProcessPlace | null;
  /** Set where nobody answers for it: it stays until an operator decides. */
  setAside: { atMs: number; reason: string } | null;
};

/** What is recorded of a sandbox. */
export type SandboxRecord = RunningRecord | PausedRecord;

/** The record of a running sandbox that is paused now. `frozen`: its processes, where they stay for a while. */
export function pausedRecord(running: RunningRecord, kept: Kept, frozen: ProcessPlace | null): PausedRecord {
  const { slot: _slot, pid: _pid, startTicks: _startTicks, resumedFrom: _resumedFrom, ...known } = running;
  return { ...known, state: 'paused', kept, pausedAtMs: Date.now(), frozen, setAside: null };
}

/** The record of a paused sandbox that runs now, as another execution. */
export function resumedRecord(
  paused: PausedRecord,
  next: ProcessPlace & { executionId: string; network: SandboxNetwork; resumedFrom: Kept },
): RunningRecord {
  const { kept: _kept, pausedAtMs: _pausedAtMs, frozen: _frozen, setAside: _setAside, ...known } = paused;
  const { agentUnresponsive: _agentUnresponsive, ...still } = known;
  return { ...still, ...next, state: 'running', startedAtMs: Date.now() };
}
