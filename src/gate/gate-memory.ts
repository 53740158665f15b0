import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
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
    recall() {
      // What a process was killed over has an end without a line of its own.
      const [line, rest] = readFileSync(path, 'utf8').split('\n', 2);
      return line && rest !== undefined ? (JSON.parse(line) as Heard) : undefined;
    },
    keep(heard) {
      const bytes = Buffer.from(`${JSON.stringify(heard)}\n`);
      writeSync(descriptor, bytes, 0, bytes.length, 0);
      ftruncateSync(descriptor, bytes.length);
    },
    [Symbol.dispose]: () => closeSync(descriptor),
  };
}

/** Time since the host started, ms, also that in which it was suspended. */
export function hostUptimeMs(): number {
  return Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * 1000;
}
