import { closeSync, existsSync, ftruncateSync, openSync, readFileSync } from 'node:fs';
import { AtollError } from '../base/error.ts';
import { writeAll } from '../base/write-all.ts';
import type { ComingEnd } from '../protocol/cluster.ts';

/** What is to become of a sandbox, and when, by the gate's clock. */
export type DueEnd = ComingEnd & { atMs: number };

/** What a gate has heard of control, by its own clock. */
type Heard = { leaseUntilMs: number; isolationMs: number; ends: DueEnd[] };

/**
 * What the next process of a gate goes on with, where this one ends while control is away. It need not survive the
 * host: after a restart of that nothing runs.
 */
export type GateMemory = { recall(): Heard | undefined; keep(heard: Heard): void };

/** One in a file, which stays open: the gate can't open any once it has its own user. */
export function openGateMemory(path: string): GateMemory & Disposable {
  const file = openSync(path, 'a+', 0o600);
  closeSync(file);
  const descriptor = openSync(path, 'r+');
  return {
    recall: () => heardIn(readFileSync(path, 'utf8')),
    keep(heard) {
      const bytes = Buffer.from(`${JSON.stringify(heard)}\n`);
      writeAll(descriptor, bytes, 0);
      ftruncateSync(descriptor, bytes.length);
    },
    [Symbol.dispose]: () => closeSync(descriptor),
  };
}

function heardIn(text: string): Heard | undefined {
  // What a process was killed over, or had no room for, has an end without a line of its own.
  const [line, rest] = text.split('\n', 2);
  if (!line || rest === undefined) return undefined;
  try {
    return JSON.parse(line) as Heard;
  } catch {
    return undefined; // half of it is what was there before
  }
}

/**
 * Whether a node may let processes run, for the node itself: it asks again right before they do, as a start may take
 * longer than a lease. `path`: the memory of its gate.
 */
export function gateLease(path: string): { require(): void } {
  const memory = { recall: () => heardIn(settledText(path)) };
  return { require: () => requireLease(memory, hostUptimeMs()) };
}

/** What the gate is writing just now may be half of the one and half of the other. */
function settledText(path: string): string {
  const read = () => (existsSync(path) ? readFileSync(path, 'utf8') : '');
  for (let [last, next] = [read(), read()]; ; [last, next] = [next, read()]) if (last === next) return next;
}

/** Throws `unavailable` where what a gate has heard of control says no more that what was asked for is still wanted. */
export function requireLease(memory: Pick<GateMemory, 'recall'>, nowMs: number): void {
  if (nowMs >= (memory.recall()?.leaseUntilMs ?? 0)) throw outOfTouch();
}

/** What a node without a lease answers. */
export const outOfTouch = () =>
  new AtollError('unavailable', 'The node is out of touch with control and takes no new work', {
    retryAfterSeconds: 2,
  });

/** Time since the host started, ms, also that in which it was suspended. */
export function hostUptimeMs(): number {
  return Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * 1000;
}
