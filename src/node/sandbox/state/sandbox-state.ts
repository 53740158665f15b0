import type { SandboxNetwork } from '../../../protocol/node.ts';
import type { Slot } from '../../layout.ts';
import type { PausedRecord, RunningRecord } from '../records/record.ts';
import type { Processes } from '../slot/processes.ts';

/** A create is under way: nobody may use its processes yet, and there is no record. */
export type Starting = {
  kind: 'starting';
  sandboxId: string;
  executionId: string;
  /** Settles like the create. */
  started: Promise<RunningRecord>;
};

/** Its processes run and its agent has its settings. */
export type Running = {
  kind: 'running';
  sandboxId: string;
  record: RunningRecord;
  processes: Processes;
  /** The network policy, if all of it is certainly in force. */
  policyInForce: SandboxNetwork | null;
  /** No file of it can be changed any more: a pause with its files and a resume repair the disk. */
  diskFailed: boolean;
};

/** A pause is under way; it ends in `frozen` or `paused`, or in `running` if it fails. */
export type Pausing = { kind: 'pausing'; sandboxId: string; record: RunningRecord; processes: Processes };

/** Everything of it is on the host's disk; no process of it is left. */
export type Paused = { kind: 'paused'; sandboxId: string; record: PausedRecord };

/** It is paused with its memory, but its processes are still there: none of them has run since. */
export type Frozen = {
  kind: 'frozen';
  sandboxId: string;
  record: PausedRecord;
  processes: Processes;
  /** Ends the processes once they were frozen for long enough. Cleared when the state is left. */
  timer: Timer;
};

/** A resume is under way; if it fails the sandbox is paused again. */
export type Resuming = { kind: 'resuming'; sandboxId: string; record: PausedRecord; nextExecutionId: string };

/** It is being removed. If the removal fails it stays in this state, for the next kill. */
export type Ending = {
  kind: 'ending';
  sandboxId: string;
  record: RunningRecord | PausedRecord;
  /** The processes that were still there. */
  processes: Processes | null;
};

/** It is on this node but out of reach: its files stay as they are until an operator decides. */
export type Unreadable = {
  kind: 'unreadable';
  sandboxId: string;
  sinceMs: number;
  reason: string;
  /** Where its processes may still be. */
  slot: Slot | null;
  /** The record; null if it can't be read. */
  record: RunningRecord | null;
};

/** The state of a sandbox of this node at a moment. A state is a value: a change replaces it by another. */
export type SandboxState = Starting | Running | Pausing | Paused | Frozen | Resuming | Ending | Unreadable;

/** The name of a state. */
export type StateKind = SandboxState['kind'];

/** Which states may follow each state. `gone`: the node knows nothing of the sandbox any more. */
export const transitions = {
  starting: ['running', 'gone'],
  running: ['running', 'pausing', 'ending'],
  pausing: ['running', 'frozen', 'paused'],
  paused: ['paused', 'resuming', 'ending'],
  frozen: ['paused', 'resuming', 'ending'],
  resuming: ['running', 'paused'],
  ending: ['gone'],
  unreadable: ['gone'],
} as const satisfies Record<StateKind, readonly (StateKind | 'gone')[]>;

/** The states that `To` may follow. */
type Before<To extends StateKind | 'gone'> = {
  [From in StateKind]: To extends (typeof transitions)[From][number] ? From : never;
}[StateKind];

/** The states that may follow every state in `From`: a state that may not follow one of them is left out. */
export type After<From extends StateKind> = {
  [To in StateKind]: [From] extends [Before<To>] ? To : never;
}[StateKind];

/** A state by its kind. */
export type StateOf<Kind extends StateKind> = Extract<SandboxState, { kind: Kind }>;

/** A state in which the node first knows a sandbox: created, or found when the node starts. */
export type FirstState = Starting | Running | Paused | Unreadable;

/** A state after which a sandbox can be gone. */
export type LastState = StateOf<Before<'gone'>>;
