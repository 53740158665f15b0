import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import type { EgressPolicy } from '../../../../protocol/network/network.ts';
import { slotOf } from '../../../layout.ts';
import type { Denial, FromProxy } from '../proxies/messages.ts';
import { createProxiedSandboxes } from './sandboxes.ts';
import { createTurns } from './shares/turns.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const open: EgressPolicy = { internetAccess: true };
const closed: EgressPolicy = { internetAccess: false };
const addressOf = (number: number) => slotOf(3, number).address;

function scene() {
  const sent: FromProxy[] = [];
  const sandboxes = createProxiedSandboxes(3, createTurns(), message => void sent.push(message));
  /** A connection of a sandbox, which may stay while its policy allows the internet. */
  const connection = (number: number) => {
    let cuts = 0;
    const carried = {
      mayStay: ({ source }: { source: EgressPolicy }) => source.internetAccess,
      cut: () => void cuts++,
    };
    sandboxes.at(addressOf(number))?.connections.add(carried);
    return () => cuts;
  };
  return { sandboxes, sent, connection };
}

test('an address stands for its sandbox from the first policy on, until that is removed', () => {
  const { sandboxes, connection } = scene();
  expect(sandboxes.at(addressOf(1))).toBeUndefined();
  sandboxes.set(1, open);
  sandboxes.set(2, closed);
  expect(sandboxes.at(addressOf(1))).toMatchObject({ slot: slotOf(3, 1), policy: { source: open } });
  const [cuts, others] = [connection(1), connection(2)];
  sandboxes.remove(1);
  expect(sandboxes.at(addressOf(1))).toBeUndefined();
  expect([cuts(), others()]).toEqual([1, 0]);
  expect(sandboxes.at(addressOf(2))?.policy.source).toEqual(closed);
  sandboxes.remove(7);
});

test('another policy cuts what may not stay, and counts on from what there is', () => {
  const { sandboxes, connection } = scene();
  sandboxes.set(1, open);
  const before = sandboxes.at(addressOf(1));
  const cuts = connection(1);
  sandboxes.set(1, { ...open, denyOut: ['192.0.2.0/24'] });
  expect(cuts()).toBe(0);
  sandboxes.set(1, closed);
  expect(cuts()).toBe(1);
  expect(sandboxes.at(addressOf(1))).toBe(before as NonNullable<typeof before>);
  expect(before?.policy.source).toEqual(closed);
});

test('another proxy on the way cuts all', () => {
  const { sandboxes, connection } = scene();
  sandboxes.set(1, open);
  const cuts = connection(1);
  const egressProxy = { address: '192.0.2.1:1080' };
  sandboxes.set(1, { ...open, egressProxy } as EgressPolicy);
  expect(cuts()).toBe(1);
  sandboxes.set(1, { ...open, egressProxy: { ...egressProxy } } as EgressPolicy);
  expect(cuts()).toBe(1);
});

test('denials are reported together, all counted and the first ten in full', () => {
  const { sandboxes, sent } = scene();
  sandboxes.set(1, closed);
  sandboxes.set(2, closed);
  const denial = (number: number) => ({ host: `host-${number}.test` }) as unknown as Denial;
  for (let number = 0; number < 12; number++) sandboxes.at(addressOf(1))?.deny(denial(number));
  sandboxes.at(addressOf(2))?.deny(denial(20));
  jest.advanceTimersByTime(249);
  expect(sent).toEqual([]);
  jest.advanceTimersByTime(1);
  expect(sent).toEqual([
    { kind: 'denied', slot: 1, count: 12, sample: Array.from({ length: 10 }, (_, number) => denial(number)) },
    { kind: 'denied', slot: 2, count: 1, sample: [denial(20)] },
  ]);
  jest.advanceTimersByTime(1_000);
  expect(sent).toHaveLength(2);
  sandboxes.at(addressOf(1))?.deny(denial(30));
  jest.advanceTimersByTime(250);
  expect(sent.at(-1)).toEqual({ kind: 'denied', slot: 1, count: 1, sample: [denial(30)] });
});
