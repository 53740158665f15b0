import type { LifecycleEvent } from '../../../../protocol/api/event.ts';
import type { Mark } from '../../../parts/plot.tsx';
import { killOf, reasons } from '../../sandboxes/ended.tsx';

const marked: Record<string, Omit<Mark, 'at'>> = {
  'sandbox.lifecycle.created': { text: 'Created', tone: 'ok' },
  'sandbox.lifecycle.resumed': { text: 'Resumed', tone: 'ok' },
  'sandbox.lifecycle.paused': { text: 'Paused', tone: 'warn' },
  'sandbox.lifecycle.checkpointed': { text: 'Snapshot taken', tone: 'warn' },
  'sandbox.lifecycle.forked': { text: 'Forked', tone: 'warn' },
  'sandbox.lifecycle.disk_failed': { text: 'Its disk failed', tone: 'danger' },
  'sandbox.lifecycle.killed': { text: 'Ended', tone: 'danger' },
};

/** What a plot of a sandbox marks of its life from then on, the oldest first. */
export function marksOf(events: readonly LifecycleEvent[], fromSeconds: number): Mark[] {
  return events
    .flatMap(event => {
      const mark = marked[event.type];
      const at = Date.parse(event.timestamp) / 1000;
      if (!mark || at < fromSeconds) return [];
      const reason = killOf(event).kill_reason;
      return [{ ...mark, at, ...(reason !== undefined && { text: `Ended: ${reasons[reason]?.text ?? reason}` }) }];
    })
    .toSorted((a, b) => a.at - b.at);
}
