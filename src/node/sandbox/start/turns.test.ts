import { expect, test } from 'bun:test';
import { createFairSemaphore } from '../../../base/concurrency/fair-semaphore.ts';
import { begin } from './begin.ts';
import { restoreProcesses } from './restored.ts';
import { startRooted } from './rooted.ts';

/** What starts wait for: all places are taken by one team, and the result shows what the starts of others then get. */
function crowded() {
  const starts = createFairSemaphore(1, 1);
  void starts.run('crowd', () => new Promise(() => {}));
  const began = new Error('it has begun');
  const parts = {
    starts,
    layers: { mount: () => Promise.resolve('/layer') },
    volumes: { change: (_: unknown, work: () => unknown) => work() },
    slotHost: { take: () => Promise.reject(began) },
    layout: {},
  };
  const order = { driver: { capabilities: { adoptsRoot: true } }, layers: [], resources: {}, volumes: [], disk: null };
  const snapshot = { manifest: { mounts: [] } };
  return { starts, began, parts, order, snapshot };
}

/** The ways in which a sandbox takes a slot. */
const ways: Record<string, (set: ReturnType<typeof crowded>, teamId: string) => Promise<unknown>> = {
  'a standby sandbox': ({ parts, order }, teamId) => begin(parts as never, { ...order, teamId } as never, undefined),
  'one with its root from the start': ({ parts, order }, teamId) =>
    startRooted(parts as never, { ...order, teamId } as never, []),
  'one with its memory': ({ parts, order, snapshot }, teamId) =>
    restoreProcesses(parts as never, {} as never, { ...order, snapshot, teamId } as never),
};

test.each(Object.keys(ways))('%s waits for no other team’s starts, and for its own', async name => {
  const set = crowded();
  await expect(ways[name]?.(set, 'other')).rejects.toBe(set.began);
  void ways[name]?.(set, 'crowd');
  await new Promise(resolve => setImmediate(resolve));
  expect(set.starts.waiting()).toBe(1);
});
