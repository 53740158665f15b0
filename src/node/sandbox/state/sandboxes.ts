import { assert, AtollError } from '../../../base/error.ts';
import { KeyedMutex } from '../../../base/concurrency/keyed-mutex.ts';
import type { ExecutionRef } from '../../../protocol/node.ts';
import type { SandboxRecord } from '../records/record.ts';
import {
  transitions,
  type After,
  type FirstState,
  type Frozen,
  type LastState,
  type Pausing,
  type Paused,
  type Resuming,
  type Running,
  type SandboxState,
  type StateKind,
  type StateOf,
} from './sandbox-state.ts';

/**
 * Every sandbox of this node: the one place that knows the state of each, and the only one that changes it. A change
 * of a sandbox first takes the sandbox's turn; later requests wait, in their order.
 */
export class Sandboxes {
  readonly #states = new Map<string, SandboxState>();
  readonly #turns = new KeyedMutex<string>();
  #closed = false;

  /** The present state of a sandbox; undefined if the node knows nothing of it. */
  get(sandboxId: string): SandboxState | undefined {
    return this.#states.get(sandboxId);
  }

  /** All present states, in the order in which the node came to know the sandboxes. */
  all(): IterableIterator<SandboxState> {
    return this.#states.values();
  }

  /** The sandboxes whose processes run, including those being paused: that may still fail. */
  running(): (Running | Pausing)[] {
    const running: (Running | Pausing)[] = [];
    for (const state of this.all()) if (state.kind === 'running' || state.kind === 'pausing') running.push(state);
    return running;
  }

  /** The paused sandboxes, including those being resumed: that may still fail. */
  paused(): (Paused | Frozen | Resuming)[] {
    return [...this.all()].filter(isPaused);
  }

  /** The records of all sandboxes, whatever their state: they say what the sandboxes need, e.g. layers. */
  records(): SandboxRecord[] {
    return [...this.all()].flatMap(state => (state.kind !== 'starting' && state.record ? [state.record] : []));
  }

  /** Whether there is a sandbox of which nobody can say what it is, and so what it needs. */
  hasUnknown(): boolean {
    return [...this.all()].some(state => state.kind === 'unreadable' && !state.record);
  }

  /** The execution, if it runs and nothing is ending it. To be called in its turn. Errors: `not_found`. */
  requireRunning(target: ExecutionRef): Running {
    const state = this.requireProcesses(target);
    if (state.kind === 'running') return state;
    throw notRunning(target);
  }

  /** The execution, if its processes run, even while it is being paused: that may still fail. Errors: `not_found`. */
  requireProcesses(target: ExecutionRef): Running | Pausing {
    const state = this.get(target.sandboxId);
    const runs = state?.kind === 'running' || state?.kind === 'pausing';
    if (runs && state.record.executionId === target.executionId) return state;
    throw notRunning(target);
  }

  /** The execution, if it is paused and not being resumed. */
  findPaused({ sandboxId, executionId }: ExecutionRef): Paused | Frozen | undefined {
    const state = this.get(sandboxId);
    const isIt = (state?.kind === 'paused' || state?.kind === 'frozen') && state.record.executionId === executionId;
    return isIt ? state : undefined;
  }

  /** How many creates, resumes and removals are under way: somebody waits for each. */
  awaited(): number {
    let count = 0;
    for (const { kind } of this.all()) if (kind === 'starting' || kind === 'resuming' || kind === 'ending') count++;
    return count;
  }

  /** Runs `work` once all earlier changes of the sandbox have ended, whether they failed or not. */
  inTurn<T>(sandboxId: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(sandboxId, work);
  }

  /**
   * Like `inTurn`, for changes that nobody has asked for: a sandbox's end, or a time that is over. After `close` it
   * does nothing: the next node of the data directory finds the change, and the slot may belong to another sandbox by
   * then.
   */
  async react(sandboxId: string, work: () => Promise<void>): Promise<void> {
    await this.inTurn(sandboxId, async () => {
      if (!this.#closed) await work();
    });
  }

  /** For the end of a node whose sandboxes run on: from now on they change only on request. */
  close(): void {
    this.#closed = true;
    for (const state of this.all()) if (state.kind === 'frozen') clearTimeout(state.timer);
  }

  /** Records a sandbox that the node did not know. */
  add<State extends FirstState>(state: State): State {
    assert(!this.#states.has(state.sandboxId), `sandbox ${state.sandboxId} is added twice`);
    this.#states.set(state.sandboxId, state);
    return state;
  }

  /** Replaces the sandbox's state by another, and answers that. To be called in the sandbox's turn. */
  transition<From extends StateKind, To extends StateOf<After<From>>>(from: StateOf<From>, to: To): To {
    this.#leave(from, to.kind);
    assert(from.sandboxId === to.sandboxId, `sandbox ${from.sandboxId} becomes ${to.sandboxId}`);
    this.#states.set(to.sandboxId, to);
    return to;
  }

  /** Forgets a sandbox. To be called in its turn. */
  remove(from: LastState): void {
    this.#leave(from, 'gone');
    this.#states.delete(from.sandboxId);
  }

  #leave(from: SandboxState, next: StateKind | 'gone'): void {
    const { sandboxId, kind } = from;
    const legal: readonly string[] = transitions[kind];
    assert(legal.includes(next), `sandbox ${sandboxId} can't be ${next} after ${kind}`);
    assert(this.#states.get(sandboxId) === from, `the state ${kind} of sandbox ${sandboxId} is not its present one`);
    assert(this.#turns.has(sandboxId), `sandbox ${sandboxId} is changed out of turn`);
    if (from.kind === 'frozen') clearTimeout(from.timer);
  }
}

function notRunning({ sandboxId }: ExecutionRef): AtollError {
  return new AtollError('not_found', `sandbox ${sandboxId} does not run on this node`);
}

function isPaused(state: SandboxState): state is Paused | Frozen | Resuming {
  return state.kind === 'paused' || state.kind === 'frozen' || state.kind === 'resuming';
}
