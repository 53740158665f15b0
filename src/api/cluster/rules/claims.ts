import { AtollError } from '../../../base/error.ts';
import { platformVersion, releaseRule, worksWith } from '../../../base/version.ts';
import { clockDifference } from '../../../base/clock-difference.ts';
import type { MachineClaims } from '../../../protocol/cluster.ts';
import type { ClusterNode } from '../record.ts';

/**
 * Throws `invalid`, with the rule, for a machine that would be of no use among `others`: with a release that control
 * does not work with, with another architecture than the templates' layers, or with a clock by which certificates are
 * not yet or no longer valid.
 */
export function requireUseful(
  { release, architecture, nowMs }: MachineClaims,
  others: readonly Pick<ClusterNode, 'info'>[],
  ownMs: number = Date.now(),
): void {
  if (!worksWith(release))
    throw new AtollError(
      'invalid',
      `machine.release: it is ${release}, and control is ${platformVersion}; ${releaseRule}`,
    );
  const known = others.flatMap(({ info }) => info?.restores?.architecture ?? [])[0];
  if (known !== undefined && known !== architecture)
    throw new AtollError(
      'invalid',
      `machine.architecture: it is ${architecture}, and the machines of this cluster are ${known}; all have to be ` +
        'the same, because templates are built for one',
    );
  const wrong = clockDifference(nowMs, ownMs, "control's");
  if (wrong !== null) throw new AtollError('invalid', `machine.nowMs: ${wrong}`);
}
