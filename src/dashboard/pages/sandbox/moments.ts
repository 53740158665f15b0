import { formatDuration } from '../../../base/duration.ts';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import { reasons } from '../sandboxes/ended.tsx';

/** What a timeline says of an event; `tone` colours it, `more` stands behind it. */
type Moment = { text: string; tone: 'ok' | 'warn' | 'danger' | ''; more: string[] };

/** What events of sandboxes say of themselves: src/api/sandbox/store. */
type Data = {
  kept?: 'memory' | 'filesystem';
  kill_reason?: string;
  moved?: boolean;
  set_network?: boolean;
  set_timeout?: string;
  /** The run that ended; its time in milliseconds. */
  execution?: { execution_time?: number };
};

const words: Record<string, [text: string, tone: Moment['tone']]> = {
  created: ['Created', 'ok'],
  resumed: ['Resumed', 'ok'],
  paused: ['Paused', 'warn'],
  updated: ['Changed', ''],
  checkpointed: ['Snapshot taken', ''],
  forked: ['Forked', ''],
  disk_failed: ['Its disk failed', 'danger'],
  killed: ['Ended', 'danger'],
};

/** An event of a sandbox in words. `clock` tells a moment as the page does. */
export function momentOf({ type, eventData }: LifecycleEvent, clock: (at: Date) => string): Moment {
  const data = (eventData ?? {}) as Data;
  const [text, tone] = words[type.split('.').at(-1) ?? ''] ?? [type, ''];
  if (data.moved) return { text: 'Moved to another machine', tone, more: [] };
  if (data.set_network) return { text: 'Network changed', tone, more: [] };
  if (data.set_timeout !== undefined)
    return { text: 'Time set', tone, more: [`until ${clock(new Date(data.set_timeout))}`] };
  const { kept, kill_reason: reason } = data;
  const ranMs = data.execution?.execution_time;
  return {
    text,
    tone,
    more: [
      ...(kept === undefined ? [] : [kept === 'memory' ? 'with its memory' : 'with its files alone']),
      ...(reason === undefined ? [] : [reasons[reason]?.text ?? reason]),
      ...(ranMs === undefined ? [] : [`after ${formatDuration(ranMs)}`]),
    ],
  };
}
