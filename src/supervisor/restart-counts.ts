import type { Metric } from '../base/telemetry/meter.ts';
import type { PartName, RestartReason } from './part-process.ts';

const parts: readonly PartName[] = ['node', 'api', 'edge', 'gate'];
const reasons: readonly RestartReason[] = ['ended', 'stalled'];

/** Restarts of each process since the platform started. */
export class RestartCounts {
  readonly #counts = new Map<string, number>();

  count(part: PartName, reason: RestartReason): void {
    this.#counts.set(`${part} ${reason}`, (this.#counts.get(`${part} ${reason}`) ?? 0) + 1);
  }

  /** For the operator's metrics. */
  metric(): Metric {
    return {
      name: 'atoll_process_restarts_total',
      help: 'Processes of the platform that were started again, because they ended or their event loop stood still',
      kind: 'counter',
      samples: parts.flatMap(process =>
        reasons.map(reason => ({ labels: { process, reason }, value: this.#counts.get(`${process} ${reason}`) ?? 0 })),
      ),
    };
  }
}
