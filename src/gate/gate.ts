import { forEachParallel } from '../base/concurrency/parallel.ts';
import { messageOf } from '../base/error.ts';
import { newUuid } from '../base/id.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Beat, BeatAnswer, ComingEnd } from '../protocol/cluster.ts';
import type { NodeProtocol, NodeSandbox } from '../protocol/node.ts';
import { type DueEnd, type GateMemory, outOfTouch } from './gate-memory.ts';

/** How often it looks whether control is there, ms. */
export const tickMs = 250;
/** Until control has said otherwise, seconds. */
const firstIsolationSeconds = 60;
/** So long a silence is told of: longer than any start of control, ms. */
const silenceMs = 30_000;
/** A pause keeps a core busy. */
const pausesAtOnce = 4;

/** What a gate works with. */
type GateOptions = {
  node: Pick<NodeProtocol, 'info' | 'list' | 'pause' | 'kill' | 'memoryAbility'>;
  bootId: string;
  release: string;
  log: Log;
  memory: GateMemory;
  /** Labels that its operator has given the machine. */
  labels?: Record<string, string>;
  /** How often its CPUs may be promised. */
  cpuOvercommit: number;
  /** A clock that nobody can set, that the next process of the gate has too, ms. */
  nowMs: () => number;
};

/**
 * Decides for the node of a machine when control can't: what runs serves on for a while and ends when its time is over;
 * then all of it is paused to the machine's own disk, because control counts it as paused from then on.
 */
export class Gate {
  readonly #options: GateOptions;
  readonly #epoch = newUuid();
  readonly #nowMs: () => number;
  /** The node may count on control until then. */
  #leaseUntilMs: number;
  #isolationMs = firstIsolationSeconds * 1000;
  #ends: DueEnd[] = [];
  #pausing: Promise<void> | null = null;
  /** When control spoke last, or this process began. */
  #heardAtMs: number;
  #isSilenceTold = false;
  /** Calls under way by which something begins to run. */
  #starts = 0;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs;
    // A process that comes anew takes no work before control was there; its silence began with what the last one heard.
    this.#leaseUntilMs = this.#nowMs();
    this.#heardAtMs = this.#leaseUntilMs;
    const last = options.memory.recall();
    if (!last) return;
    this.#leaseUntilMs = Math.min(this.#leaseUntilMs, last.leaseUntilMs);
    this.#isolationMs = last.isolationMs;
    this.#ends = last.ends;
  }

  /**
   * Carries out a call by which something begins to run. Throws `unavailable` while the node can't know whether control
   * still wants what was asked for.
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

  /** Takes what control says. */
  async beat({ lease, isolationSeconds, pauseFirst, ends }: Beat): Promise<BeatAnswer> {
    const nowMs = this.#nowMs();
    this.#heardAtMs = nowMs;
    if (this.#isSilenceTold) this.#options.log.warn('control speaks with this machine again');
    this.#isSilenceTold = false;
    this.#isolationMs = isolationSeconds * 1000;
    this.#ends = ends.map(end => ({ ...end, atMs: nowMs + end.inMs }));
    if (lease?.epoch === this.#epoch) this.#leaseUntilMs = Math.max(this.#leaseUntilMs, lease.untilMs);
    // Its clock may have stood still with the machine, and then the lease is not over by it.
    if (pauseFirst) this.#leaseUntilMs = Math.min(this.#leaseUntilMs, nowMs);
    this.#remember();
    const { labels, cpuOvercommit } = this.#options;
    const info = await this.#options.node.info();
    // Asked for with each beat until nothing runs: a start that began under the lease may come to its end only now.
    if (pauseFirst && info.sandboxCount > 0) this.#pauseAll();
    return {
      epoch: this.#epoch,
      nowMs: this.#nowMs(),
      bootId: this.#options.bootId,
      release: this.#options.release,
      info: { ...info, ...(labels && { labels }), cpuOvercommit },
      // What was begun under a lease that is over fails for want of one, and would not under the next one.
      isPausing: this.#pausing !== null || (pauseFirst && this.#starts > 0),
    };
  }

  /** Does what is due while control is away. To be called often. */
  async tick(): Promise<void> {
    if (this.#hasLease) return;
    const nowMs = this.#nowMs();
    this.#tellSilence(nowMs);
    const due = this.#ends.filter(({ atMs }) => atMs <= nowMs);
    this.#ends = this.#ends.filter(({ atMs }) => atMs > nowMs);
    if (due.length > 0) this.#remember();
    for (const end of due) void this.#carryOut(end);
    // Again and again: a start that began under the lease may come to its end after all others were paused.
    if (nowMs >= this.#leaseUntilMs + this.#isolationMs) this.#pauseAll();
  }

  /** When nothing is being paused. */
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

  /** Once for each silence. Who was taken out of the cluster learns of it in no other way: nobody asks it any more. */
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

  /** With its memory, else with its files; one that can't be paused at all must not run on. */
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
