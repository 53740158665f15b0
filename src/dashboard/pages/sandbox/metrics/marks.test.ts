import { expect, test } from 'bun:test';
import type { LifecycleEvent } from '../../../../protocol/api/event.ts';
import { marksOf } from './marks.ts';

const event = (type: string, timestamp: string, data: object | null = null) =>
  ({ type: `sandbox.lifecycle.${type}`, timestamp, event_data: data }) as LifecycleEvent;

test('a plot marks what happened since its beginning, the oldest first, an end with its reason', () => {
  const events = [
    event('killed', '1970-01-01T00:05:00Z', { kill_reason: 'out_of_memory' }),
    event('updated', '1970-01-01T00:04:00Z'),
    event('paused', '1970-01-01T00:03:00Z'),
    event('created', '1970-01-01T00:01:00Z'),
  ];
  expect(marksOf(events, 100)).toEqual([
    { at: 180, text: 'Paused', tone: 'warn' },
    { at: 300, text: 'Ended: out of memory', tone: 'danger' },
  ]);
});
