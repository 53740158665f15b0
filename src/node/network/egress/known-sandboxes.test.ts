import { expect, test } from 'bun:test';
import { compilePolicy } from '../../../protocol/network/egress-policy.ts';
import { slotOf } from '../../layout.ts';
import { createKnownSandboxes, type ConnectedSandbox } from './known-sandboxes.ts';

const policy = compilePolicy({ internetAccess: true });
const other = compilePolicy({ internetAccess: false });

/** Sandboxes without links: the test sets what their rules refused; undefined means that the rules are gone. */
function scene() {
  const refused = new Map<number, number | undefined>();
  const known = createKnownSandboxes(({ number }) => refused.get(number));
  const sandbox = (number: number): ConnectedSandbox => ({
    ...{ sandboxId: `s${number}`, slot: { ...slotOf(15, number), interfaceName: 'none' } },
    namespace: undefined as never,
  });
  return { known, refused, sandbox, denied: (number: number) => known.counters(sandbox(number).slot).denied };
}

test('a sandbox is known by its slot until it is removed', () => {
  const { known, sandbox } = scene();
  expect([known.get(1), known.remove(1)]).toEqual([undefined, false]);
  known.put(sandbox(1), policy);
  known.adopt(sandbox(2), other);
  expect(known.get(1)).toMatchObject({ sandbox: { sandboxId: 's1' }, policy });
  expect([...known.all()].map(one => one.sandbox.sandboxId)).toEqual(['s1', 's2']);
  expect([known.remove(1), known.get(1), known.countOne(1)]).toEqual([true, undefined, undefined]);
});

test('on a link that an earlier sandbox had, only later refusals count', () => {
  const { known, refused, sandbox, denied } = scene();
  refused.set(1, 10);
  known.put(sandbox(1), policy);
  expect(denied(1)).toBe(0);
  refused.set(1, 13);
  known.addDenied(1, 2);
  known.addDenied(9, 5);
  expect([denied(1), denied(9)]).toEqual([5, 0]);
});

test('the counters of a sandbox go on under another policy', () => {
  const { known, refused, sandbox, denied } = scene();
  refused.set(1, 10);
  known.put(sandbox(1), policy);
  refused.set(1, 12);
  known.addDenied(1, 1);
  known.count();
  known.put(sandbox(1), other);
  expect([denied(1), known.get(1)?.policy, known.totals().denied]).toEqual([3, other, 3]);
});

test('totals have what went through of all, once, and of those that are gone what was counted', () => {
  const { known, refused, sandbox } = scene();
  for (const number of [1, 2]) {
    refused.set(number, 0);
    known.put(sandbox(number), policy);
    refused.set(number, 4);
  }
  expect([known.totals(), known.totals()]).toEqual(Array(2).fill({ bytesOut: 0, bytesIn: 0, denied: 8 }));
  refused.set(1, 5);
  expect([known.countOne(1)?.denied, known.totals().denied]).toEqual([5, 9]);
  known.remove(1);
  refused.set(1, 100);
  expect(known.totals().denied).toBe(9);
});

test('traffic from before this node ran is not in the totals', () => {
  const { known, refused, sandbox, denied } = scene();
  refused.set(1, 7);
  known.adopt(sandbox(1), policy);
  expect([denied(1), known.totals().denied]).toEqual([7, 0]);
  refused.set(1, 9);
  expect(known.totals().denied).toBe(2);
  known.put(sandbox(1), other);
  refused.set(1, 10);
  expect([denied(1), known.totals().denied]).toEqual([10, 3]);
});

test('while the rules are gone nothing is refused, and nothing is taken back', () => {
  const { known, refused, sandbox, denied } = scene();
  refused.set(1, 5);
  known.put(sandbox(1), policy);
  refused.set(1, 8);
  expect(known.totals().denied).toBe(3);
  refused.set(1, undefined);
  expect([denied(1), known.totals().denied]).toEqual([0, 3]);
});

test('if the rules count from zero again, earlier refusals still count', () => {
  const { known, refused, sandbox, denied } = scene();
  refused.set(1, 5);
  known.put(sandbox(1), policy);
  known.adopt(sandbox(2), policy);
  refused.set(1, 8);
  known.count();
  known.refusalsBeginAnew();
  refused.set(1, 1);
  expect([denied(1), known.totals().denied]).toEqual([4, 4]);
});
