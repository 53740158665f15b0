import { expect, test } from 'bun:test';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import { ancestorOf, childrenOf } from './relatives.ts';

const event = (timestamp: string, data: object | null) => ({ timestamp, event_data: data }) as LifecycleEvent;

test('a fork knows where it comes from, and a sandbox what came of it', () => {
  expect(ancestorOf([event('2', null), event('1', { forked_from: 'parent' })])).toBe('parent');
  expect(ancestorOf([])).toBeUndefined();
  const events = [
    event('3', { fork_id: 'second' }),
    event('2', { snapshot_id: 'snap' }),
    event('1', { fork_id: 'first' }),
    event('1', { fork_id: 'first' }),
  ];
  expect(childrenOf(events, [{ snapshotID: 'snap:default', names: [] }])).toEqual([
    { kind: 'snapshot', id: 'snap:default', at: '2' },
    { kind: 'sandbox', id: 'first', at: '1' },
    { kind: 'sandbox', id: 'second', at: '3' },
  ]);
});
