import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { formatDuration } from '../../../base/duration.ts';
import { formatMoment } from '../../format.ts';
import { useZone } from '../../parts/zone.tsx';
import { Meter, useNow } from '../../parts/bits.tsx';

/** How long a sandbox still runs, as a bar of its whole time; for a paused one, since when it is paused. */
export function TimeLeft({
  of: { state, startedAt, endAt },
}: {
  of: Pick<ListedSandbox, 'state' | 'startedAt' | 'endAt'>;
}) {
  const now = useNow();
  const zone = useZone();
  if (state === 'paused')
    return (
      <span className="muted num" title={`Paused ${formatMoment(new Date(endAt), zone)}`}>
        paused {formatDuration(now - Date.parse(endAt))}
      </span>
    );
  const [start, end] = [Date.parse(startedAt), Date.parse(endAt)];
  const left = end - now;
  return (
    <span
      className="row num"
      style={{ gap: 6, flexWrap: 'nowrap' }}
      title={`Ends ${formatMoment(new Date(end), zone)}`}
    >
      <Meter left share={left / Math.max(1, end - start)} label={`${formatDuration(left)} left`} />
      {left > 0 ? formatDuration(left) : 'ending'}
    </span>
  );
}
