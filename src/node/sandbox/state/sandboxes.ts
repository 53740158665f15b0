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
 * Every sandbox of this node: the one place that knows in which state each is, and the only one that changes it.
 * Whoever changes a sandbox has its turn first; what was asked for meanwhile waits, in the order in which it was asked.
 */
export class Sandboxes {
  readonly #states = new Map<string, SandboxState>();
  readonly #turns = new KeyedMutex<string>();
  #closed = false;

  /** The state of a sandbox now; undefined where the node knows nothing of it. */
  get(sandboxId: string): SandboxState | undefined {
    return this.#states.get(sandboxId);
  }

  /** All states now, in the order in which the node came to know the sandboxes. */
  all(): IterableIterator<SandboxState> {
    return this.#states.values();
  }

  /** The sandboxes whose processes run: a pause that is under way may still fail. */
  running(): (Running | Pausing)[] {
    const running: (Running | Pausing)[] = [];
    for (const state of this.all()) if (state.kind === 'running' || state.kind === 'pausing') running.push(state);
    return running;
  }

  /** The sandboxes that are paused, those that a resume is under way for included: it may still fail. */
  paused(): (Paused | Frozen | Resuming)[] {
    return [...this.all()].filter(isPaused);
  }

  /** What was recorded of every sandbox, whatever its state: who needs what sandboxes stand on asks here. */
  records(): SandboxRecord[] {
    return [...this.all()].flatMap(state => (state.kind !== 'starting' && state.record ? [state.record] : []));
  }

  /** Whether nobody can say of some sandbox what it is, and so what it stands on. */
  hasUnknown(): boolean {
    return [...this.all()].some(state => state.kind === 'unreadable' && !state.record);
  }

  /** The execution, where it runs and nothing that ends it is under way. In its turn. Errors: `not_found`. */
  requireRunning(target: ExecutionRef): Running {
    const state = this.requireProcesses(target);
    if (state.kind === 'running') return state;
    throw notRunning(target);
  }

  /** The execution, where its processes run: a pause that is under way may still fail. Errors: `not_found`. */
  requireProcesses(target: ExecutionRef): Running | Pausing {
    const state = this.get(target.sandboxId);
    const runs = state?.kind === 'running' || state?.kind === 'pausing';
    if (runs && state.record.executionId === target.executionId) return state;
    throw notRunning(target);
  }

  /** The execution, where it is paused and no resume is under way. */
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

  /** Runs `work` when the changes of the sandbox that were asked for before have ended, however they did. */
  inTurn<T>(sandboxId: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(sandboxId, work);
  }

  /**
   * As `inTurn`, for what nobody has asked for: a sandbox's end, a time that is over. After `close` nothing is done:
   * the next node of the data directory finds it, and the slot may be another sandbox's by then.
   */
  async react(sandboxId: string, work: () => Promise<void>): Promise<void> {
    await this.inTurn(sandboxId, async () => {
      if (!this.#closed) await work();
    });
  }

  /** For the end of a node whose sandboxes go on: from now on they change only where somebody asks for it. */
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

  /** Puts a state in the place of the one that the sandbox is in, and answers it. In the sandbox's turn. */
  transition<From extends StateKind, To extends StateOf<After<From>>>(from: StateOf<From>, to: To): To {
    this.#leave(from, to.kind);
    assert(from.sandboxId === to.sandboxId, `sandbox ${from.sandboxId} becomes ${to.sandboxId}`);
    this.#states.set(to.sandboxId, to);
    return to;
  }

  /** Forgets a sandbox. In its turn. */
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
