import { forEachParallel } from '../base/concurrency/parallel.ts';
import { messageOf } from '../base/error.ts';
import { newUuid } from '../base/id.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Beat, BeatAnswer, ComingEnd } from '../protocol/cluster.ts';
import type { NodeProtocol, NodeSandbox } from '../protocol/node.ts';
import { type DueEnd, type GateMemory, outOfTouch } from './gate-memory.ts';

/** Interval at which it checks whether control is there, ms. */
export const tickMs = 250;
/** Seconds that hold until control has said otherwise. */
const firstIsolationSeconds = 60;
/** The length of a silence that is worth a log entry: longer than any start of control, ms. */
const silenceMs = 30_000;
/** Pauses at a time: each keeps a core busy. */
const pausesAtOnce = 4;

/** What a gate needs. */
type GateOptions = {
  node: Pick<NodeProtocol, 'info' | 'list' | 'pause' | 'kill' | 'memoryAbility'>;
  bootId: string;
  release: string;
  log: Log;
  memory: GateMemory;
  /** Labels that the operator has given the machine. */
  labels?: Record<string, string>;
  /** How often its CPUs may be promised. */
  cpuOvercommit: number;
  /** A clock that nobody can set and that the gate's next process shares, ms. */
  nowMs: () => number;
};

/**
 * Decides for a machine's node when control can't. For a while, running sandboxes serve on, and end when their time is
 * over. Then it pauses all of them to the machine's own disk, because from then on control counts them as paused.
 */
export class Gate {
  readonly #options: GateOptions;
  readonly #epoch = newUuid();
  readonly #nowMs: () => number;
  /** Until then the node may count on control. */
  #leaseUntilMs: number;
  #isolationMs = firstIsolationSeconds * 1000;
  #ends: DueEnd[] = [];
  #pausing: Promise<void> | null = null;
  /** When control last spoke, or when this process began. */
  #heardAtMs: number;
  #isSilenceTold = false;
  /** Calls under way that start something. */
  #starts = 0;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs;
    // A new process takes no work before it has heard control; the silence is counted from what the last process heard.
    this.#leaseUntilMs = this.#nowMs();
    this.#heardAtMs = this.#leaseUntilMs;
    const last = options.memory.recall();
    if (!last) return;
    this.#leaseUntilMs = Math.min(this.#leaseUntilMs, last.leaseUntilMs);
    this.#isolationMs = last.isolationMs;
    this.#ends = last.ends;
  }

  /**
   * Carries out a call that starts something. Throws `unavailable` while the node can't know whether control still
   * wants it.
   */
  async underLease<T>(start: () => Promise<T>): Promise<T> {
    if (!this.#hasLease || this.#pausing) throw outOfTouch();
    this.#starts++;
    try {
      return await start();
    } finally {
      this.#starts--;
    }
  }

  /** Handles a beat from control. */
  async beat({ lease, isolationSeconds, pauseFirst, ends }: Beat): Promise<BeatAnswer> {
    const nowMs = this.#nowMs();
    this.#heardAtMs = nowMs;
    if (this.#isSilenceTold) this.#options.log.warn('control speaks with this machine again');
    this.#isSilenceTold = false;
    this.#isolationMs = isolationSeconds * 1000;
    this.#ends = ends.map(end => ({ ...end, atMs: nowMs + end.inMs }));
    if (lease?.epoch === this.#epoch) this.#leaseUntilMs = Math.max(this.#leaseUntilMs, lease.untilMs);
    // The gate's clock may have stood still with the machine, so that by it the lease would not be over yet.
    if (pauseFirst) this.#leaseUntilMs = Math.min(this.#leaseUntilMs, nowMs);
    this.#remember();
    const { labels, cpuOvercommit } = this.#options;
    const info = await this.#options.node.info();
    // Repeated with each beat until nothing runs: a start that began under the lease may finish only now.
    if (pauseFirst && info.sandboxCount > 0) this.#pauseAll();
    return {
      epoch: this.#epoch,
      nowMs: this.#nowMs(),
      bootId: this.#options.bootId,
      release: this.#options.release,
      info: { ...info, ...(labels && { labels }), cpuOvercommit },
      // A start under an expired lease fails for want of a lease, but would not under the next one.
      isPausing: this.#pausing !== null || (pauseFirst && this.#starts > 0),
    };
  }

  /** Does what is due while control is away. Call it often. */
  async tick(): Promise<void> {
    if (this.#hasLease) return;
    const nowMs = this.#nowMs();
    this.#tellSilence(nowMs);
    const due = this.#ends.filter(({ atMs }) => atMs <= nowMs);
    this.#ends = this.#ends.filter(({ atMs }) => atMs > nowMs);
    if (due.length > 0) this.#remember();
    for (const end of due) void this.#carryOut(end);
    // Repeated: a start that began under the lease may finish after all others were paused.
    if (nowMs >= this.#leaseUntilMs + this.#isolationMs) this.#pauseAll();
  }

  /** Settles when nothing is being paused. */
  async settled(): Promise<void> {
    await this.#pausing;
  }

  get #hasLease(): boolean {
    return this.#nowMs() < this.#leaseUntilMs;
  }

  #remember(): void {
    const [leaseUntilMs, isolationMs, ends] = [this.#leaseUntilMs, this.#isolationMs, this.#ends];
    this.#options.memory.keep({ leaseUntilMs, isolationMs, ends });
  }

  /**
   * Once for each silence. A machine that was taken out of the cluster learns it in no other way: nobody calls it any
   * more.
   */
  #tellSilence(nowMs: number): void {
    if (this.#isSilenceTold || nowMs < this.#heardAtMs + silenceMs) return;
    this.#isSilenceTold = true;
    const seconds = Math.round((nowMs - this.#heardAtMs) / 1000);
    this.#options.log.warn(
      'control does not speak with this machine: look at the way to it, and whether `atoll node list` there has it; ' +
        'one that was taken out, or has another address than it joined with, joins anew by a token',
      { seconds },
    );
  }

  async #carryOut({ sandboxId, executionId, then, memory }: ComingEnd): Promise<void> {
    const { node, log } = this.#options;
    const target = { sandboxId, executionId };
    try {
      if (then === 'pause') await node.pause(target, { memory });
      else await node.kill(target, 'timed_out');
    } catch (error) {
      log.warn('a sandbox whose time is over could not be ended while control is away', {
        sandboxId,
        error: messageOf(error),
      });
    }
  }

  #pauseAll(): void {
    if (this.#pausing) return;
    const { node, log } = this.#options;
    const work = async () => {
      const running = await node.list();
      if (running.length > 0) log.warn('control is away: all sandboxes are paused', { sandboxes: running.length });
      await forEachParallel(running, pausesAtOnce, sandbox => this.#pause(sandbox));
    };
    this.#pausing = work()
      .catch((error: unknown) => log.error('sandboxes could not be paused', { error: messageOf(error) }))
      .finally(() => (this.#pausing = null));
  }

  /** Pauses it with its memory, else with its files. A sandbox that can't be paused at all must not run on. */
  async #pause({ sandboxId, executionId }: NodeSandbox): Promise<void> {
    const { node, log } = this.#options;
    const target = { sandboxId, executionId };
    const tries = [
      async () => void (await node.pause(target, { memory: (await node.memoryAbility(target)).kept })),
      async () => void (await node.pause(target, { memory: false })),
      () => node.kill(target),
    ];
    for (const attempt of tries) {
      try {
        return await attempt();
      } catch (error) {
        log.warn('a sandbox could not be paused in this way', { sandboxId, error: messageOf(error) });
      }
    }
  }
}
