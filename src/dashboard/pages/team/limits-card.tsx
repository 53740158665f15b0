import type { TeamUse } from '../../../protocol/api/team.ts';
import { useRead } from '../../api/hooks.ts';
import { formatBytes, formatCount } from '../../format.ts';
import { Meter } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';

const everyMs = 10_000;
const mebibyte = 1024 ** 2;

const counted = [
  { of: 'concurrentSandboxes', name: 'Sandboxes at once' },
  { of: 'concurrentBuilds', name: 'Builds at once' },
  { of: 'sandboxes', name: 'Sandboxes, running and paused' },
  { of: 'templates', name: 'Templates' },
  { of: 'builds', name: 'Builds that are kept' },
  { of: 'snapshots', name: 'Snapshots' },
  { of: 'volumes', name: 'Volumes' },
] as const;

/** The team's limits, and how much of each is used. */
export function LimitsCard() {
  const use = useRead<TeamUse>('/limits', { every: everyMs });
  return (
    <Card title="Limits">
      <Loaded of={use}>
        {({ limits, taken }) => (
          <div className="body columns">
            <dl className="facts">
              {counted.map(({ of, name }) => (
                <div key={of} style={{ display: 'contents' }}>
                  <dt>{name}</dt>
                  <dd className="row" style={{ gap: 10, flexWrap: 'nowrap' }}>
                    <Meter
                      share={taken[of] / Math.max(1, limits[of])}
                      label={`${name}: ${taken[of]} of ${limits[of]}`}
                    />
                    <span className="num">
                      {formatCount(taken[of])} of {formatCount(limits[of])}
                    </span>
                  </dd>
                </div>
              ))}
            </dl>
            <dl className="facts">
              <dt>One sandbox</dt>
              <dd className="num">
                {limits.cpuCount} CPU, {formatBytes(limits.memoryMiB * mebibyte)} of memory,{' '}
                {formatBytes(limits.diskMiB * mebibyte)} of disk
              </dd>
              <dt>Runs at most</dt>
              <dd className="num">{limits.lifetimeHours} hours at a time</dd>
              <dt>Requests to the API</dt>
              <dd className="num">
                {limits.requestsPerSecond === 0 ? 'not limited' : `${limits.requestsPerSecond} a second`}
              </dd>
            </dl>
          </div>
        )}
      </Loaded>
    </Card>
  );
}
