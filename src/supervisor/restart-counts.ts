import type { Family } from '../base/meter.ts';
import type { PartName, RestartReason } from './part.ts';

const parts: readonly PartName[] = ['node', 'api', 'edge'];
const reasons: readonly RestartReason[] = ['ended', 'stalled'];

/** How often each process of the platform was started again since the platform started. */
export class RestartCounts {
  readonly #counts = new Map<string, number>();

  count(part: PartName, reason: RestartReason): void {
    this.#counts.set(`${part} ${reason}`, (this.#counts.get(`${part} ${reason}`) ?? 0) + 1);
  }

  /** For the operator's metrics. */
  family(): Family {
    return {
      name: 'atoll_process_restarts_total',
      help: 'Processes of the platform that were started again, because they ended or their event loop stood still',
      kind: 'counter',
      samples: parts.flatMap(process => reasons.map(reason => ({ labels: { process, reason }, value: this.#counts.get(`${process} ${reason}`) ?? 0 }))),
    };
  }
}
