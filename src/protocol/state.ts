/**
 * The life of a sandbox: which state may follow which, and what each operation does in each state. Rules, routes and
 * the edge all read this one table.
 */

/**
 * `starting`, `killing`: hidden from clients. `pausing`, `resuming`: shown as `paused`, so that a sandbox never
 * appears twice in a list. `snapshotting` (also for forks) and `moving` (to another machine): shown as `running`.
 */
export const sandboxStates = [
  'starting',
  'running',
  'pausing',
  'paused',
  'resuming',
  'snapshotting',
  'moving',
  'killing',
] as const;
/** A state of a sandbox in the store. */
export type SandboxState = (typeof sandboxStates)[number];

/** The states that clients see. */
export type ShownState = 'running' | 'paused';

/** The states between two lasting ones, of sandboxes that clients see. */
export const transitions = ['pausing', 'resuming', 'snapshotting', 'moving'] as const satisfies SandboxState[];
export type Transition = (typeof transitions)[number];

/** The transition that a state stands for; null where it stands for none. */
export const transitionOf = (state: SandboxState): Transition | null =>
  transitions.find(transition => transition === state) ?? null;

/** The states that may follow each state. A sandbox that is gone has no row, and so no state. */
export const nextStates: Record<SandboxState, readonly SandboxState[]> = {
  starting: ['running', 'killing'],
  running: ['pausing', 'snapshotting', 'moving', 'killing'],
  pausing: ['paused', 'running', 'killing'],
  paused: ['resuming', 'killing'],
  resuming: ['running', 'paused', 'killing'],
  snapshotting: ['running', 'pausing', 'killing'],
  moving: ['running', 'paused', 'killing'],
  killing: [],
};

/** Says whether the state machine has this transition. */
export function mayBecome(from: SandboxState, to: SandboxState): boolean {
  return nextStates[from].includes(to);
}

const shown: Record<SandboxState, ShownState | null> = {
  starting: null,
  running: 'running',
  pausing: 'paused',
  paused: 'paused',
  resuming: 'paused',
  snapshotting: 'running',
  moving: 'running',
  killing: null,
};

/** The state as clients see it, or null for a sandbox that they must not see. */
export function shownState(state: SandboxState): ShownState | null {
  return shown[state];
}

/** The states behind one shown state. */
export function statesShownAs(state: ShownState): SandboxState[] {
  return sandboxStates.filter(candidate => shown[candidate] === state);
}

/** The states in which a sandbox uses a machine and counts towards its team's limit of concurrent sandboxes. */
export const occupyingStates: readonly SandboxState[] = [
  'starting',
  'running',
  'pausing',
  'resuming',
  'snapshotting',
  'moving',
];

/** Operations of clients; the state of the sandbox decides whether they are allowed. */
export const sandboxOperations = [
  'read',
  'kill',
  'setTimeout',
  'refresh',
  'connect',
  'pause',
  'resume',
  'fork',
  'snapshot',
  'updateNetwork',
] as const;
/** An operation on an existing sandbox. */
export type SandboxOperation = (typeof sandboxOperations)[number];

/**
 * `allowed`: do it. `wait`: a transition is under way; look again when it has ended. `conflict`: 409.
 * `not_found`: 404, the same answer as for a sandbox that does not exist.
 */
type Verdict = 'allowed' | 'wait' | 'conflict' | 'not_found';

const verdicts: Record<SandboxOperation, Record<SandboxState, Verdict>> = {
  read: row('not_found', 'allowed', 'allowed', 'allowed', 'allowed', 'allowed', 'allowed', 'not_found'),
  kill: row('not_found', 'allowed', 'allowed', 'allowed', 'allowed', 'allowed', 'allowed', 'not_found'),
  setTimeout: row('not_found', 'allowed', 'conflict', 'not_found', 'conflict', 'conflict', 'allowed', 'not_found'),
  refresh: row('not_found', 'allowed', 'conflict', 'not_found', 'conflict', 'conflict', 'allowed', 'not_found'),
  connect: row('not_found', 'allowed', 'wait', 'allowed', 'wait', 'wait', 'wait', 'conflict'),
  pause: row('not_found', 'allowed', 'conflict', 'conflict', 'conflict', 'wait', 'wait', 'not_found'),
  resume: row('not_found', 'conflict', 'wait', 'allowed', 'conflict', 'conflict', 'conflict', 'not_found'),
  fork: row('not_found', 'allowed', 'conflict', 'conflict', 'conflict', 'conflict', 'conflict', 'not_found'),
  snapshot: row('not_found', 'allowed', 'conflict', 'not_found', 'conflict', 'conflict', 'conflict', 'not_found'),
  updateNetwork: row('not_found', 'allowed', 'conflict', 'not_found', 'conflict', 'conflict', 'conflict', 'not_found'),
};

/** The verdict on `operation` for a sandbox in `state`. */
export function verdictOn(operation: SandboxOperation, state: SandboxState): Verdict {
  return verdicts[operation][state];
}

function row(
  starting: Verdict,
  running: Verdict,
  pausing: Verdict,
  paused: Verdict,
  resuming: Verdict,
  snapshotting: Verdict,
  moving: Verdict,
  killing: Verdict,
): Record<SandboxState, Verdict> {
  return { starting, running, pausing, paused, resuming, snapshotting, moving, killing };
}
