import { expect, test } from 'bun:test';
import { platformVersion } from '../../../base/version.ts';
import type { ClusterNode } from '../record.ts';
import { requireUseful } from './claims.ts';

const others = [{ info: { restores: { architecture: 'x86_64' } } }] as unknown as ClusterNode[];
const good = { release: platformVersion, architecture: 'x86_64', nowMs: 1_000_000 };

test('a machine of the same kind, release and time is admitted, and the first one of any architecture', () => {
  expect(() => requireUseful(good, others, 1_059_000)).not.toThrow();
  expect(() => requireUseful({ ...good, architecture: 'aarch64' }, [], good.nowMs)).not.toThrow();
});

test('a machine of another release, architecture or time is refused, with the rule', () => {
  const cases = [
    [{ release: '99.0.0' }, /it is 99\.0\.0, and control is .*minor release/],
    [{ architecture: 'aarch64' }, /it is aarch64, and the machines of this cluster are x86_64/],
    [{ nowMs: good.nowMs - 3_600_000 }, /3600 s behind control's, and at most 60 s/],
    [{ nowMs: good.nowMs + 61_000 }, /61 s ahead of control's/],
  ] as const;
  for (const [change, says] of cases)
    expect(() => requireUseful({ ...good, ...change }, others, good.nowMs)).toThrow(says);
});
