import { closeSync, existsSync, ftruncateSync, openSync, readFileSync } from 'node:fs';
import { AtollError } from '../base/error.ts';
import { writeAll } from '../base/write-all.ts';
import type { ComingEnd } from '../protocol/cluster.ts';

/** What should become of a sandbox, and when, by the gate's clock. */
export type DueEnd = ComingEnd & { atMs: number };

/** What a gate has heard of control, by its own clock. */
type Heard = { leaseUntilMs: number; isolationMs: number; ends: DueEnd[] };

/**
 * What the next process of a gate starts from, if this one ends while control is away. It need not survive the host:
 * after the host's restart nothing runs.
 */
export type GateMemory = { recall(): Heard | undefined; keep(heard: Heard): void };

/** A memory in a file, which stays open: the gate can't open any once it runs as its own user. */
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
  // A process that was killed while it wrote, or had no room, leaves an end without its own line.
  const [line, rest] = text.split('\n', 2);
  if (!line || rest === undefined) return undefined;
  try {
    return JSON.parse(line) as Heard;
  } catch {
    return undefined; // half of it is the earlier text
  }
}

/**
 * Says whether a node may let processes run. The node itself asks again right before they do, as a start may take
 * longer than a lease. `path`: the memory of its gate.
 */
export function gateLease(path: string): { require(): void } {
  const memory = { recall: () => heardIn(settledText(path)) };
  return { require: () => requireLease(memory, hostUptimeMs()) };
}

/** A text that the gate is writing right now may be half old and half new. */
function settledText(path: string): string {
  const read = () => (existsSync(path) ? readFileSync(path, 'utf8') : '');
  for (let [last, next] = [read(), read()]; ; [last, next] = [next, read()]) if (last === next) return next;
}

/**
 * Throws `unavailable` where the gate has not heard from control recently enough to know that the request is still
 * wanted.
 */
export function requireLease(memory: Pick<GateMemory, 'recall'>, nowMs: number): void {
  if (nowMs >= (memory.recall()?.leaseUntilMs ?? 0)) throw outOfTouch();
}

/** The error of a node without a lease. */
export const outOfTouch = () =>
  new AtollError('unavailable', 'The node is out of touch with control and takes no new work', {
    retryAfterSeconds: 2,
  });

/** Time since the host started, ms, including time in suspension. */
export function hostUptimeMs(): number {
  return Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * 1000;
}
