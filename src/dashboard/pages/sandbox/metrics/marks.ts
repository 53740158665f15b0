import type { LifecycleEvent } from '../../../../protocol/api/event.ts';
import type { Mark } from '../../../parts/plot.tsx';
import { killOf, reasons } from '../../sandboxes/ended.tsx';
import { wordsOf } from '../moments.ts';

/** The events of a sandbox's life that a plot marks, the oldest first. */
export function marksOf(events: readonly LifecycleEvent[], fromSeconds: number): Mark[] {
  return events
    .flatMap(event => {
      const at = Date.parse(event.timestamp) / 1000;
      // A changed timeout or network policy shows in no line.
      if (event.type === 'sandbox.lifecycle.updated' || at < fromSeconds) return [];
      const { text, tone } = wordsOf(event.type);
      const reason = killOf(event).kill_reason;
      const why = reason === undefined ? '' : `: ${reasons[reason]?.text ?? reason}`;
      return [{ at, text: `${text}${why}`, tone: tone || 'warn' } satisfies Mark];
    })
    .toSorted((a, b) => a.at - b.at);
}
