import { useState } from 'react';
import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { formatDuration } from '../../../base/duration.ts';
import { Badge, useNow } from '../../parts/bits.tsx';

/** A transition that takes longer needs attention: most take well under a second. */
const stuckMs = 60_000;
/** From then on, the badge shows how long it has taken. */
const slowMs = 3_000;

/** The state of a sandbox, or its current transition and how long this page has seen it. */
export function StateBadge({ of: { state, transition } }: { of: Pick<ListedSandbox, 'state' | 'transition'> }) {
  return transition ? (
    <InTransition key={transition} name={transition} />
  ) : (
    <Badge tone={state === 'running' ? 'ok' : 'idle'}>{state}</Badge>
  );
}

function InTransition({ name }: { name: string }) {
  useNow();
  // By a clock that nobody sets, unlike the page's, which is set to the platform's.
  const [since] = useState(() => performance.now());
  const ms = performance.now() - since;
  const isStuck = ms >= stuckMs;
  return (
    <span title={isStuck ? `It has been ${name} for longer than a minute: an operator should look` : undefined}>
      <Badge tone={isStuck ? 'danger' : 'warn'}>
        {name}
        {ms >= slowMs && ` ${formatDuration(ms)}`}
      </Badge>
    </span>
  );
}
