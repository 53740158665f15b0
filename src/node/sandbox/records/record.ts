import type { Kept, SandboxNetwork, SandboxResources, TemplateImage } from '../../../protocol/node.ts';
import type { DriverName } from '../../../protocol/driver.ts';
import type { SandboxVolume } from '../../../protocol/volume.ts';

/** What is recorded of a sandbox in every state that it can have after a crash. */
type Known = {
  sandboxId: string;
  executionId: string;
  /** The team that it belongs to. Absent in records from before nodes knew teams. */
  teamId?: string;
  /** Lets the platform give the agent new settings. Only root can read the file. */
  controlToken: string;
  /** The kernel's boot ID (UUID) that its programs read. */
  bootId: string;
  resources: SandboxResources;
  network: SandboxNetwork;
  /** What its root is made from: these layers are not deleted. */
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
  /**
   * When the process `pid` started, in clock ticks since boot: with another time, the number belongs to another
   * process.
   */
  startTicks: number;
};

/** What a node must know about a running sandbox after its own restart. */
export type RunningRecord = Known &
  ProcessPlace & {
    state: 'running';
    /** Null if the sandbox was created. */
    resumedFrom: Kept | null;
  };

/** What a node must know to resume a paused sandbox, even after a restart of the host. */
export type PausedRecord = Known & {
  state: 'paused';
  kept: Kept;
  pausedAtMs: number;
  /** Its memory was kept while its agent did not answer: a restore brings the same agent back. */
  agentUnresponsive?: true;
  /**
   * The processes whose memory was kept, which may still be there. While they are frozen, none has run since. If they
   * run, a crash has undone the pause before anybody was told of it.
   */
  frozen: ProcessPlace | null;
  /** Set if nobody answers for it: it stays until an operator decides. */
  setAside: { atMs: number; reason: string } | null;
};

/** What is recorded of a sandbox. */
export type SandboxRecord = RunningRecord | PausedRecord;

/** The record of a running sandbox that is now paused. `frozen`: its processes, if they stay for a while. */
export function pausedRecord(running: RunningRecord, kept: Kept, frozen: ProcessPlace | null): PausedRecord {
  const { slot: _slot, pid: _pid, startTicks: _startTicks, resumedFrom: _resumedFrom, ...known } = running;
  return { ...known, state: 'paused', kept, pausedAtMs: Date.now(), frozen, setAside: null };
}

/** The record of a paused sandbox that now runs, as another execution. */
export function resumedRecord(
  paused: PausedRecord,
  next: ProcessPlace & { executionId: string; network: SandboxNetwork; resumedFrom: Kept },
): RunningRecord {
  const { kept: _kept, pausedAtMs: _pausedAtMs, frozen: _frozen, setAside: _setAside, ...known } = paused;
  const { agentUnresponsive: _agentUnresponsive, ...still } = known;
  return { ...still, ...next, state: 'running', startedAtMs: Date.now() };
}
