import { readdirSync } from 'node:fs';
import { expect, test } from 'bun:test';
import { slotOf } from '../../layout.ts';
import type { NetworkNamespace } from '../../native/netns.ts';
import { limitBandwidth } from './bandwidth.ts';

test('a link that is gone leaves nothing open', () => {
  const slot = { ...slotOf(0, 1), interfaceName: 'atoll-gone' };
  const open = () => readdirSync('/proc/self/fd').length;
  const before = open();
  for (let n = 0; n < 10; n++)
    expect(() => limitBandwidth(slot, {} as NetworkNamespace, 1_000_000)).toThrow('atoll-gone');
  expect(open()).toBe(before);
});
