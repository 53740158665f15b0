import type { Metric } from '../base/telemetry/meter.ts';
import { type ProcessRestarts, processRestartsMetric } from '../base/telemetry/process-restarts.ts';
import type { PartName, RestartReason } from './part-process.ts';

const parts: readonly PartName[] = ['node', 'api', 'edge', 'gate'];
const reasons: readonly RestartReason[] = ['ended', 'stalled'];

/** Restarts of each process since the platform started. */
export class RestartCounts {
  readonly #counts = new Map<string, number>();

  count(part: PartName, reason: RestartReason): void {
    this.#counts.set(`${part} ${reason}`, (this.#counts.get(`${part} ${reason}`) ?? 0) + 1);
  }

  /** The counts of all processes, including those that never restarted. */
  counts(): ProcessRestarts[] {
    return parts.flatMap(process =>
      reasons.map(reason => ({ process, reason, count: this.#counts.get(`${process} ${reason}`) ?? 0 })),
    );
  }

  /** For the operator's metrics. */
  metric(): Metric {
    return {
      name: processRestartsMetric,
      help: 'Processes of the platform that were started again, because they ended or their event loop stood still',
      kind: 'counter',
      samples: this.counts().map(({ count, ...labels }) => ({ labels, value: count })),
    };
  }
}
