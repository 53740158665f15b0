import { expect, test } from 'bun:test';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import { momentOf } from './moments.ts';

const event = (type: string, eventData: Record<string, unknown> | null) =>
  ({ type: `sandbox.lifecycle.${type}`, eventData }) as unknown as LifecycleEvent;
const said = (type: string, data: Record<string, unknown> | null = null) => {
  const { text, more } = momentOf(event(type, data), at => at.toISOString().slice(11, 16));
  return [text, ...more].join(' · ');
};

test('a pause says what it kept, and after how long; an end why', () => {
  expect(said('paused', { kept: 'memory', execution: { execution_time: 61_000 } })).toBe(
    'Paused · with its memory · after 1m 1s',
  );
  expect(said('paused', { kept: 'filesystem' })).toBe('Paused · with its files alone');
  expect(said('killed', { kill_reason: 'out_of_memory' })).toBe('Ended · out of memory');
});

test('a change says what was changed', () => {
  expect(said('updated', { set_timeout: '2026-11-26T17:40:00Z' })).toBe('Time set · until 17:40');
  expect(said('updated', { set_network: true })).toBe('Network changed');
  expect(said('updated', { moved: true })).toBe('Moved to another machine');
  expect(said('updated')).toBe('Changed');
});

test('an unknown event is shown by its name', () => {
  expect(said('polished')).toBe('sandbox.lifecycle.polished');
});
