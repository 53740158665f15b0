import { formatDuration } from '../../../base/duration.ts';
import type { EventType, LifecycleEvent } from '../../../protocol/api/event.ts';
import { reasons } from '../sandboxes/ended.tsx';

/** A timeline's text about an event; `tone` colours it, `more` follows it. */
type Moment = { text: string; tone: 'ok' | 'warn' | 'danger' | ''; more: string[] };

/** The data of sandbox events: src/api/sandbox/store. */
type Data = {
  kept?: 'memory' | 'filesystem';
  kill_reason?: string;
  moved?: boolean;
  set_network?: boolean;
  set_timeout?: string;
  /** The run that ended; its time in milliseconds. */
  execution?: { execution_time?: number };
};

/** What happened to a sandbox, by the type of the event, and its colour. */
const words: Partial<Record<EventType, { text: string; tone: Moment['tone'] }>> = {
  'sandbox.lifecycle.created': { text: 'Created', tone: 'ok' },
  'sandbox.lifecycle.resumed': { text: 'Resumed', tone: 'ok' },
  'sandbox.lifecycle.paused': { text: 'Paused', tone: 'warn' },
  'sandbox.lifecycle.updated': { text: 'Changed', tone: '' },
  'sandbox.lifecycle.checkpointed': { text: 'Snapshot taken', tone: '' },
  'sandbox.lifecycle.forked': { text: 'Forked', tone: '' },
  'sandbox.lifecycle.disk_failed': { text: 'Its disk failed', tone: 'danger' },
  'sandbox.lifecycle.killed': { text: 'Ended', tone: 'danger' },
};

/** The name and colour of a sandbox event; an unknown event is named by its type. */
export const wordsOf = (type: EventType): Pick<Moment, 'text' | 'tone'> => words[type] ?? { text: type, tone: '' };

/** A sandbox event in words. `clock` formats times as the page does. */
export function momentOf({ type, eventData }: LifecycleEvent, clock: (at: Date) => string): Moment {
  const data = (eventData ?? {}) as Data;
  const { text, tone } = wordsOf(type);
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
